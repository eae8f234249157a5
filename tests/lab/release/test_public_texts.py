"""The public texts of a release: which sources, and that each file is known by its name."""

from pathlib import Path

from lab.release.check import read_json
from lab.release.public_texts import FILES, LICENCES, REVIEWS, SOURCES, sources_of
from malmoi.text.public.catalog import sources


def test_files_of_every_source_lead_back_to_it_alone_and_have_a_licence() -> None:
    names = [name for files in FILES.values() for name in files]
    assert len(set(names)) == len(names)
    for source, files in FILES.items():
        assert sources_of(files) == (source,)
        assert set(files) <= {file.name for file in sources()[source].files}
    for name in (*names, REVIEWS):
        assert len([beginning for beginning in LICENCES if name.startswith(beginning)]) == 1


def test_a_new_encoder_reads_no_source_in_which_tests_stand_or_that_is_share_alike() -> None:
    assert set(SOURCES) == FILES.keys() - {"chatbot"}
    assert not any("SA" in sources()[source].licence for source in SOURCES)
    # The texts of an encoder that read less.
    files = read_json(Path(__file__).parents[3] / "checkpoints" / "malmoi-small" / "corpus.json")
    assert sources_of(files["sha256"]) == ("kote", "petitions")
