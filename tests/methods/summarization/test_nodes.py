"""What parties note of what they were shown."""

from privada.methods.summarization import Curator


def test_transcripts_show_no_row_and_count_points(town, matching):
    consumer, owners = town()
    curator = Curator()
    summary = curator.summarise(consumer, owners, matching)
    assert curator.view.points == summary.points_seen == 40
    assert [entry.kind for entry in owners[0].view.entries] == [
        "summarization.sum",
        "summarization.near",
        "summarization.rows",
    ]
    assert [entry.kind for entry in consumer.view.entries] == ["summarization.sum"]
    digits = [f"{value:.5f}"[:6] for value in summary.X.ravel()]
    assert not any(text in str(curator.view.to_dict()) + repr(summary) for text in digits)
