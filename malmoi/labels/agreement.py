"""How far annotators agree beyond chance, and on which texts they do not.

Cohen's kappa of two annotators is scikit-learn's, Krippendorff's alpha (nominal) the package
krippendorff's; Fleiss' kappa is computed here, as no kept package for it is small. Texts that were
skipped are no votes. A number that is not defined has a reason in its place.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations

from sqlalchemy import select

from malmoi.labels.access import ProjectAccess
from malmoi.labels.label_book import LabelBook
from malmoi.labels.tables import PlaceRow
from malmoi.messages import Phrase

# By text: the choice of each annotator, any text that names it.
Votes = Mapping[int, Mapping[str, str]]

NO_SHARED = Phrase("no text has the labels of two annotators")
ONE_LABEL = Phrase("all gave one label only, so agreement by chance is certain")


@dataclass(frozen=True, kw_only=True)
class Measure:
    """One number.

    Attributes:
        value: up to 1; 0 is chance. None where it is not defined.
        reason: why it is not.
        texts: that it was computed from.
        disagreed: those of them on which annotators differ.
    """

    value: float | None
    reason: str | None
    texts: tuple[int, ...]
    disagreed: tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class PairAgreement:
    """Two annotators.

    Attributes:
        kappa: Cohen's.
        confusions: texts by what the first and the second said; only where they differ.
    """

    first: str
    second: str
    kappa: Measure
    confusions: Mapping[tuple[str, str], tuple[int, ...]]


@dataclass(frozen=True, kw_only=True)
class AgreementReport:
    """All of a project.

    Attributes:
        alpha: Krippendorff's, over all texts with two votes or more. Sets of labels of a `multi`
            project agree where they are equal.
        fleiss: Fleiss' kappa, over the texts with as many votes as most of these have.
        classes: Krippendorff's alpha of each label against all others.
        pairs: of annotators, by name.
    """

    alpha: Measure
    fleiss: Measure
    classes: Mapping[str, Measure]
    pairs: tuple[PairAgreement, ...]


def agreement(access: ProjectAccess) -> AgreementReport:
    """Agreement of the annotators of a project, by the labels that hold now.

    Raises:
        AccessError: the person is no reviewer.
    """
    query = select(PlaceRow.text_id, PlaceRow.annotator, PlaceRow.choice).where(
        PlaceRow.project_id == access.project_id,
        PlaceRow.state == "labelled",
        PlaceRow.choice.is_not(None),
    )
    with access.reading("reviewer") as connection:
        book = LabelBook(access, connection)
        votes: dict[int, dict[str, str]] = defaultdict(dict)
        for text_id, annotator, choice in connection.execute(query):
            votes[text_id][annotator] = str(choice)
    choices = {choice for some in votes.values() for choice in some.values()}
    labels = {choice: book.labels(choice) for choice in choices}
    classes = {}
    for name in book.names:
        having = {choice for choice in choices if name in labels[choice]}
        if having:
            classes[name] = krippendorff_alpha(
                {
                    text_id: {who: str(choice in having) for who, choice in some.items()}
                    for text_id, some in votes.items()
                }
            )
    shown = {choice: ", ".join(names) for choice, names in labels.items()}
    return AgreementReport(
        alpha=krippendorff_alpha(votes),
        fleiss=fleiss_kappa(votes),
        classes=classes,
        pairs=tuple(pairs(votes, shown)),
    )


def krippendorff_alpha(votes: Votes) -> Measure:
    """Krippendorff's alpha for nominal data (Content Analysis, chapter 12), by `krippendorff`."""
    import krippendorff  # numpy takes long

    shared = _shared(votes)
    values = sorted({value for some in shared.values() for value in some.values()})
    if not shared:
        return _undefined(NO_SHARED, shared)
    if len(values) < 2:
        return _undefined(ONE_LABEL, shared)
    given = [list(some.values()) for some in shared.values()]
    counts = [[one.count(value) for value in values] for one in given]
    alpha = krippendorff.alpha(value_counts=counts, level_of_measurement="nominal")
    return _measure(float(alpha), shared)


def fleiss_kappa(votes: Votes) -> Measure:
    """Fleiss' kappa (1971, equations 2 to 7), which wants as many votes for each text.

    Computed from the texts with the number of votes, two or more, that most of these have.
    """
    shared = _shared(votes)
    sizes = Counter(len(some) for some in shared.values())
    if not sizes:
        return _undefined(NO_SHARED, shared)
    raters = max(sizes, key=lambda size: (sizes[size], size))
    used = {text_id: some for text_id, some in shared.items() if len(some) == raters}
    given = [list(some.values()) for some in used.values()]
    total = Counter(value for one in given for value in one)
    if len(total) < 2:
        return _undefined(ONE_LABEL, used)
    # Of the ordered pairs of votes, two different ones, those that are equal.
    equal = sum(sum(map(one.count, one)) - raters for one in given)
    observed = equal / (raters * (raters - 1)) / len(given)
    by_chance = sum((count / total.total()) ** 2 for count in total.values())
    return _measure((observed - by_chance) / (1 - by_chance), used)


def pairs(votes: Votes, shown: Mapping[str, str]) -> list[PairAgreement]:
    """Cohen's kappa (1960) of any two annotators.

    Args:
        votes: by text and annotator.
        shown: what a choice is called in the confusions.
    """
    people = sorted({who for some in votes.values() for who in some})
    return [_pair(votes, shown, first, second) for first, second in combinations(people, 2)]


def _pair(votes: Votes, shown: Mapping[str, str], first: str, second: str) -> PairAgreement:
    both = {
        text_id: {first: some[first], second: some[second]}
        for text_id, some in votes.items()
        if first in some and second in some
    }
    confusions: dict[tuple[str, str], list[int]] = defaultdict(list)
    for text_id, some in both.items():
        one, other = some[first], some[second]
        if one != other:
            confusions[shown.get(one, one), shown.get(other, other)].append(text_id)
    values = [[some[who] for some in both.values()] for who in (first, second)]
    if not both:
        kappa = _undefined(f"{first} and {second} have labelled no text both", both)
    elif len({*values[0], *values[1]}) < 2:
        kappa = _undefined(ONE_LABEL, both)
    else:
        from sklearn.metrics import cohen_kappa_score

        kappa = _measure(float(cohen_kappa_score(*values)), both)
    return PairAgreement(
        first=first,
        second=second,
        kappa=kappa,
        confusions={pair: tuple(ids) for pair, ids in sorted(confusions.items())},
    )


def _shared(votes: Votes) -> dict[int, Mapping[str, str]]:
    return {text_id: some for text_id, some in sorted(votes.items()) if len(some) > 1}


def _disagreed(votes: Votes) -> tuple[int, ...]:
    return tuple(text_id for text_id, some in votes.items() if len(set(some.values())) > 1)


def _measure(value: float, votes: Votes) -> Measure:
    return Measure(value=value, reason=None, texts=tuple(votes), disagreed=_disagreed(votes))


def _undefined(reason: str, votes: Votes) -> Measure:
    return Measure(value=None, reason=reason, texts=tuple(votes), disagreed=_disagreed(votes))
