"""The service's benchmarks measure what they say; how fast a machine is, is not tested."""

from __future__ import annotations

import io
import json
import os
from itertools import islice

import pytest
import typer
from PIL import Image
from typer.testing import CliRunner

from newfound.benchmarks import service_pages, service_speed
from newfound.benchmarks.service_clients import Sent, posts
from newfound.benchmarks.service_speed import Measured, Parts, Round
from newfound.cli import bench_serve

TINY = "test_efficientnet"


def test_what_the_parts_allow_is_one_after_the_other_and_the_clients_cost_is_told_apart():
    cores = os.cpu_count() or 1
    parts = Parts(images=100, decoding=1.0, encoding=2.5, entering=0.5, cores_had=1.0)
    sent = Sent(seconds=5.0, processor=0.2 * 5.0 * cores, latencies=[0.5] * 100, refused=[])
    one = Round(parts, sent)
    assert parts.rate == 25.0
    assert one.rate == 20.0
    assert one.ratio == pytest.approx(0.8)
    assert one.clients_share == pytest.approx(0.2)
    assert one.corrected == pytest.approx(1.0)


def test_what_was_refused_is_no_image_a_second():
    sent = Sent(seconds=2.0, processor=0.0, latencies=[0.5] * 10, refused=[429] * 30)
    found = Measured(TINY, 4, [Round(Parts(40, 1.0, 1.0, 1.0, 1.0), sent)])
    assert found.middle("rate") == 5.0
    assert found.refused == 30


def test_no_two_posts_have_the_same_image_and_all_can_be_read():
    out = io.BytesIO()
    Image.new("RGB", (8, 8), "teal").save(out, "JPEG")
    bodies = [post.partition(b"\r\n\r\n")[2] for post in islice(posts("127.0.0.1", 1, [out.getvalue()]), 3)]
    images = [body.partition(b"\r\n\r\n")[2].rpartition(b"\r\n--newfound")[0] for body in bodies]
    assert len(set(images)) == 3
    for image in images:
        assert Image.open(io.BytesIO(image)).convert("RGB").getpixel((4, 4)) == pytest.approx((0, 128, 128), abs=3)


@pytest.mark.slow
def test_every_image_of_every_client_is_answered_by_a_real_server():
    app = typer.Typer()
    app.command()(bench_serve.serve)
    options = ["--clients", "4", "--images", "12", "--rounds", "1", "--backbone", TINY, "--json"]
    result = CliRunner().invoke(app, options)
    assert result.exit_code == 0, result.output
    told = json.loads(result.stdout)
    assert (told["clients"], told["refused"], len(told["rounds"])) == (4, 0, 1)
    (one,) = told["rounds"]
    assert one["images"] == 12
    assert one["ratio"] == pytest.approx(one["rate"] * (one["decoding"] + one["encoding"] + one["entering"]) / 12)
    assert 0 < told["alone"]["p50"] <= told["alone"]["p99"]


@pytest.mark.slow
def test_the_row_of_the_speed_table_is_a_share_of_what_the_parts_allow():
    row = service_speed.serving(8, clients=2, repeats=1, backbone=TINY)
    assert (row.stage, row.unit) == ("serve", "images/s")
    assert row.ratio == pytest.approx(row.ours / row.baseline)
    assert "0 refused" in row.detail


def test_all_views_of_a_made_up_journal_are_asked_for_before_and_after_it_is_known():
    found = service_pages.measure(sightings=3000, categories=40, dimension=8)
    assert (found.sightings, found.categories) == (3000, 40)
    assert found.first.keys() == found.again.keys() == service_pages.VIEWS.keys()
    assert min(found.first.values()) > 0
