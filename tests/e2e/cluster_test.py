#!/usr/bin/env python3
"""Tests of what the end-to-end tests and benchmarks measure with, without a cluster."""

import importlib.util
import json
import pathlib
import tempfile
import unittest
from unittest import mock

import cluster


def load(path):
    spec = importlib.util.spec_from_file_location(path.replace("/", "_"), cluster.TOP / path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


bench = load("bench/cluster.py")
load("bench/scale.py")
load("tests/e2e/run.py")


class Audit(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.TemporaryDirectory()
        self.addCleanup(self.dir.cleanup)
        self.path = pathlib.Path(self.dir.name, "audit.log")
        self.add("before")
        self.log = cluster.AuditLog(self.path)
        self.addCleanup(lambda: self.log.file.close())

    def add(self, *names, verb="patch"):
        with self.path.open("a") as file:
            for name in names:
                file.write(json.dumps({"verb": verb, "name": name}) + "\n")

    def rotate(self, time):
        self.path.rename(self.path.with_name(f"audit-{time}.log"))

    def writes(self):
        return [event["name"] for event in self.log.writes()]

    def test_writes_since_it_was_opened(self):
        self.add("a")
        self.add("look", verb="get")
        self.assertEqual(self.writes(), ["a"])
        self.add("b")
        self.assertEqual(self.writes(), ["b"])

    def test_across_rotations(self):
        self.add("a")
        self.rotate("2026-01-01T00-00-00.000")
        self.add("b")
        self.rotate("2026-01-01T00-01-00.000")
        self.add("c")
        self.assertEqual(self.writes(), ["a", "b", "c"])
        self.add("d")
        self.assertEqual(self.writes(), ["d"])

    def test_a_lost_file_is_no_zero(self):
        self.add("a")
        self.rotate("2026-01-01T00-00-00.000")
        self.add("b")
        next(self.path.parent.glob("audit-*")).unlink()
        with self.assertRaises(cluster.Failed):
            self.writes()


class Figures(unittest.TestCase):
    def test_a_row_has_its_floor(self):
        rows = list(cluster.figures_table({"made": [3.0, 1.0, 2.0], "told": [0.5]}, {"made": [0.9, 0.7, 0.8]}, 3))
        self.assertEqual(rows[1].split(), "made 2.0 s 3.0 s 0.8 s".split())
        self.assertEqual(rows[2].split(), "told 0.5 s 0.5 s -".split())

    def test_the_floor_is_the_worker(self):
        container = {"name": "slurmd", "lifecycle": {"preStop": {}}, "readinessProbe": {}, "startupProbe": {}}
        pod = {"metadata": {"name": "cpu-0", "labels": {"app.kubernetes.io/name": "slurmd"}, "ownerReferences": [{}]},
               "spec": {"nodeName": "node-1", "hostname": "cpu-0", "subdomain": "workers", "initContainers": [{"name": "wait-controller"}],
                        "containers": [container]}}
        copy = bench.bare_copy(pod, "floor-0")
        self.assertEqual(copy["metadata"], {"name": "floor-0", "labels": {"bench": "floor"}})
        self.assertEqual(copy["spec"], {"subdomain": "workers", "initContainers": [{"name": "wait-controller"}], "containers": [container]})

    def test_the_end_of_a_job_is_never_too_late(self):
        # A poll takes 2 s; the job is over by the third.
        now, polls = [0.0], iter([["RUNNING"], ["COMPLETING"], ["CANCELLED"]])

        class Slurm:
            def slurm(self, *_):
                now[0] += 1

            def jobs(self):
                now[0] += 2
                return {7: {"job_state": next(polls)}}

        with mock.patch("time.monotonic", lambda: now[0]), mock.patch("time.sleep"):
            self.assertEqual(bench.cancel(Slurm(), 7), 3.0)
            self.assertEqual(now[0], 7.0)

    def test_a_job_that_is_over_at_once_ended_after_scancel_began(self):
        ns = mock.Mock(jobs=lambda: {})
        with mock.patch("time.monotonic", mock.Mock(side_effect=[1.0, 2.0, 3.0])):
            self.assertEqual(bench.cancel(ns, 7), 1.0)


class Releases(unittest.TestCase):
    def test_made_ones_and_the_reason_of_the_others(self):
        said = {"made": "26.11\n24.11", "skipped": "26.05: why not"}
        with mock.patch.object(cluster, "shell", lambda script: said[script.split()[-1]]), mock.patch("builtins.print") as out:
            self.assertEqual(cluster.slurm_releases(), ["26.11", "24.11"])
        out.assert_called_once_with("skipped Slurm 26.05: why not", flush=True)


class Waiting(unittest.TestCase):
    def test_what_is_not_there_yet_is_waited_for(self):
        answers = iter([None, {"metadata": {}}, {"metadata": {"uid": "u"}}])
        self.assertEqual(cluster.wait("a uid", lambda: next(answers)["metadata"]["uid"], every=0), "u")

    def test_keep_goes_on_beside_what_failed(self):
        with mock.patch.object(cluster, "kubectl") as kubectl, mock.patch.object(cluster, "KEEP", True):
            ns = cluster.Namespace("a", "26.05")
            ns.renew()
        self.assertNotIn("a", [call.args[2] for call in kubectl.call_args_list])


if __name__ == "__main__":
    unittest.main()
