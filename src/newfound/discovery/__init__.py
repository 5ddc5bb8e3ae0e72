"""The online stage: dictionaries that name the categories they know and found the ones they do not."""

from newfound.discovery.decisions import Decisions
from newfound.discovery.dictionary import Dictionary
from newfound.discovery.discoverer import Category, Discoverer, Sighting
from newfound.discovery.prototypes import PrototypeDictionary

__all__ = ["Category", "Decisions", "Dictionary", "Discoverer", "PrototypeDictionary", "Sighting"]
