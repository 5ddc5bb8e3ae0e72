"""The online stage: dictionaries that name the categories they know and found the ones they do not."""

from newfound.discovery.codes import CodeDictionary, majority_codes
from newfound.discovery.coding import Coding, GroupArgmax, SignCode, TopK
from newfound.discovery.decisions import Decisions
from newfound.discovery.dictionary import Dictionary
from newfound.discovery.discoverer import Category, Discoverer, Sighting
from newfound.discovery.leaders import LeaderDictionary, lead
from newfound.discovery.prototypes import PrototypeDictionary

__all__ = [
    "Category",
    "CodeDictionary",
    "Coding",
    "Decisions",
    "Dictionary",
    "Discoverer",
    "GroupArgmax",
    "LeaderDictionary",
    "PrototypeDictionary",
    "Sighting",
    "SignCode",
    "TopK",
    "lead",
    "majority_codes",
]
