"""The online stage: dictionaries that name the categories they know and found the ones they do not."""

from newfound.discovery._ledger import Event
from newfound.discovery.bayesian import BayesianDictionary
from newfound.discovery.codes import CodeDictionary, majority_codes
from newfound.discovery.coding import Coding, GroupArgmax, SignCode, TopK
from newfound.discovery.decisions import Decisions
from newfound.discovery.dictionary import Dictionary
from newfound.discovery.leaders import LeaderDictionary, lead
from newfound.discovery.prototypes import PrototypeDictionary
from newfound.discovery.rules import RuleDictionary
from newfound.discovery.ruling import GaussianExpansion, OnlinePrototypes, ThreeWay, typical_spread
from newfound.discovery.standing import events_of, standing
from newfound.discovery.two_covariance import TwoCovariance, class_sums, scatter

__all__ = [
    "BayesianDictionary",
    "CodeDictionary",
    "Coding",
    "Decisions",
    "Dictionary",
    "Event",
    "GaussianExpansion",
    "GroupArgmax",
    "LeaderDictionary",
    "OnlinePrototypes",
    "PrototypeDictionary",
    "RuleDictionary",
    "SignCode",
    "ThreeWay",
    "TopK",
    "TwoCovariance",
    "class_sums",
    "events_of",
    "lead",
    "majority_codes",
    "scatter",
    "standing",
    "typical_spread",
]
