#!/usr/bin/env python3
"""Tests, without a cluster, the helper code of the end-to-end tests and benchmarks."""

import importlib.util
import inspect
import json
import pathlib
import re
import subprocess
import tempfile
import unittest
from unittest import mock

import cluster
import suite


def load(path):
    spec = importlib.util.spec_from_file_location(path.replace("/", "_"), cluster.TOP / path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


bench = load("bench/cluster.py")
load("bench/scale.py")
run = load("tests/e2e/run.py")
soak = load("tests/e2e/soak.py")


class Kubectl(unittest.TestCase):
    """Which commands are repeated because they were not served."""

    def asked(self, *errors):
        """Returns how often a command is run if kubectl ends with these errors, one after the other, and then succeeds."""
        answers = [subprocess.CompletedProcess([], 1, "", error) for error in errors] + [subprocess.CompletedProcess([], 0, "good", "")]
        with mock.patch.object(cluster.subprocess, "run", side_effect=answers) as run, mock.patch.object(cluster.time, "sleep"):
            try:
                self.assertEqual(cluster.kubectl("get", "pods").stdout, "good")
            except cluster.Failed as failed:
                self.assertIn(errors[-1], str(failed))
            return run.call_count

    def test_asks_again_where_nothing_has_begun(self):
        self.assertEqual(self.asked("error: Internal error occurred: error dialing backend: EOF"), 2)
        self.assertEqual(self.asked("Error from server: error dialing backend: EOF", "The connection to the server a:1 was refused - did you"), 3)

    def test_asks_once_where_it_may_have(self):
        for error in ("Error from server (NotFound): pods \"a\" not found", "Error from server: etcdserver: request timed out",
                      "error: unexpected EOF", "ssh: connect to host login port 22: Connection refused"):
            self.assertEqual(self.asked(error), 1, error)

    def test_gives_up(self):
        self.assertEqual(self.asked(*["error: unable to upgrade connection: container not found"] * 4), 4)


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

    def test_a_line_that_is_being_written(self):
        with self.path.open("a") as file:
            file.write('{"verb": "patch", ')
            file.flush()
            self.assertEqual(self.writes(), [])
            file.write('"name": "a"}\n')
        self.assertEqual(self.writes(), ["a"])

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

    def test_what_is_no_time_has_no_seconds(self):
        rows = list(cluster.figures_table({"the operator, MiB": [7.0], "number of jobs lost, of 9": [0]}, {}, 1))
        self.assertEqual([row[-24:].split() for row in rows[1:]], [["7.0", "7.0", "-"], ["0.0", "0.0", "-"]])

    def test_ready_is_the_last_one_from_when_it_stayed_so(self):
        of = lambda *lines: mock.Mock(lines=list(lines))
        first, flapped = of((1, "False"), (2, "True"), (9, "True")), of((1, "True"), (3, "False"), (5, "True"))
        self.assertEqual(bench.all_ready([first, flapped], 0), 5)
        for other in (of(), of((2, "True"), (3, "False"))):
            with self.assertRaises(cluster.Failed):
                bench.all_ready([first, other], 0)

    def test_the_floor_is_the_worker(self):
        container = {"name": "slurmd", "lifecycle": {"preStop": {}}, "readinessProbe": {}, "startupProbe": {}}
        pod = {"metadata": {"name": "cpu-0", "labels": {"app.kubernetes.io/name": "slurmd"}, "ownerReferences": [{}]},
               "spec": {"nodeName": "node-1", "hostname": "cpu-0", "subdomain": "workers", "initContainers": [{"name": "wait-controller"}],
                        "containers": [container]}}
        copy = bench.bare_copy(pod, "floor-0")
        self.assertEqual(copy["metadata"], {"name": "floor-0", "labels": {"bench": "floor"}})
        self.assertEqual(copy["spec"], {"subdomain": "workers", "initContainers": [{"name": "wait-controller"}], "containers": [container]})

    def test_the_end_of_a_job_is_never_too_late(self):
        # A poll takes 2 s. The job has ended at the third.
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

    def test_an_answer_that_was_cut_off_is_asked_for_again(self):
        answers = iter(["", '{"nodes": [{"na', '{"nodes": ["cpu-0"]}'])
        self.assertEqual(cluster.wait("nodes", lambda: json.loads(next(answers))["nodes"], every=0), ["cpu-0"])

    def test_a_condition_of_the_spec_before_does_not_count(self):
        seen = lambda generation, status: {"metadata": {"generation": 2}, "status": {"observedGeneration": generation, "conditions": [
            {"type": "Ready", "status": status, "reason": "r", "message": str(generation)}]}}
        answers = iter([None, {"metadata": {"generation": 2}}, seen(1, "True"), seen(2, "False"), seen(2, "True")])
        ns = cluster.Namespace("a", "26.05")
        with mock.patch.object(ns, "get", lambda *_: next(answers)), mock.patch("time.sleep"):
            self.assertEqual(ns.wait_condition("nodesets", "cpu")["message"], "2")

    def test_a_job_is_told_until_it_hears(self):
        ns, told = cluster.Namespace("a", "26.05"), []
        with mock.patch.object(ns, "tell", lambda job, _: told.append(job)), mock.patch.object(ns, "completed", lambda job: len(told) == 2), mock.patch("time.sleep"):
            ns.told(7)
        self.assertEqual(told, [7, 7])

    def test_keep_goes_on_beside_what_failed(self):
        with mock.patch.object(cluster, "kubectl") as kubectl, mock.patch.object(cluster, "KEEP", True):
            ns = cluster.Namespace("a", "26.05")
            ns.renew()
        self.assertNotIn("a", [call.args[2] for call in kubectl.call_args_list])


class Lanes(unittest.TestCase):
    """What counts as a failure of a lane, and which tests run alone."""

    def told(self, *outcomes, settled=True, renewed=True):
        """Returns the results of a lane of tests with these outcomes, and what the lane prints."""
        locks = tempfile.TemporaryDirectory()
        self.addCleanup(locks.cleanup)
        tests = [mock.Mock(__name__=f"test_{number}", side_effect=None if good else cluster.Failed("it is not so"))
                 for number, good in enumerate(outcomes)]
        fails = lambda what: mock.Mock(side_effect=cluster.Failed(what))
        settles = mock.Mock() if settled else fails("a reason is left")
        new = mock.Mock() if renewed else fails("no such image")
        with mock.patch.multiple(
                run, Namespace=mock.MagicMock(), cgroup_plugin=lambda: "", kubernetes_is_whole=lambda: True, ready_cluster=mock.Mock(),
                renew=new, as_each_test_finds_it=settles), mock.patch("builtins.print") as out:
            results = run.Lane("26.05", run.in_one_cluster, tests, locks.name).run()
        return results, [re.sub(r" \([0-9.]+ s\)", "", call.args[0]) for call in out.call_args_list]

    def test_a_failure_gets_the_next_test_a_new_cluster(self):
        results, lines = self.told(True, False, True)
        self.assertEqual(results, [True, True, False, True])
        self.assertIn("ok      26.05 a new cluster for the next test", lines)
        self.assertIn("not ok  26.05 test 1: it is not so", lines)

    def test_a_new_cluster_that_cannot_be_made_is_a_failure(self):
        results, lines = self.told(False, True, renewed=False)
        self.assertEqual(results, [True, False, False, False])
        self.assertIn("not ok  26.05 a new cluster for the next test: no such image", lines)
        self.assertIn("not ok  26.05 test 1: it was not begun, for there is no cluster", lines)

    def test_a_cluster_that_does_not_settle_is_a_failure_of_its_own_name(self):
        results, lines = self.told(True, settled=False)
        self.assertEqual(results, [True, False])
        self.assertIn("not ok  26.05 test 0: it was not begun, for what it needs is not there: a reason is left", lines)

    def test_a_lane_that_breaks_off_is_a_failure(self):
        with mock.patch.object(run, "cgroup_plugin", side_effect=OSError("no bash")), mock.patch("builtins.print") as out:
            results = run.Lane("26.05", run.in_their_own, [mock.Mock(__name__="a")], "/nonexistent").run()
        self.assertEqual(results, [False])
        self.assertIn("not ok  26.05 in their own broke off after 0 of 1 tests", out.call_args.args[0])

    def test_who_disturbs_all_of_the_cluster_is_alone(self):
        """Searches the source of each test for code that takes the operator, a Kubernetes node or a kubelet away, or that adds
        to the API."""
        words = re.compile(
            r'kubectl\("(uncordon|cordon|taint|drain)"|"(label|annotate|delete)", "node"|kubelet_away\(|moved\(|process\("kube|without_the_operator\('
            r'|"slurm-operator", "(delete|scale)"|scale", "deployment/slurm-operator|"patch", "crd"|text=SERVICE_MONITORS|MetricsServer\(|keda\(')
        disturbing = {function.__name__ for function in [*suite.TESTS, *suite.OWN_CLUSTERS] if words.search(inspect.getsource(function))}
        alone = {function.__name__ for function in suite.ALONE}
        self.assertEqual(disturbing - alone, set())
        self.assertGreater(len(disturbing), 15)


class Processes(unittest.TestCase):
    def test_one_stands_still_and_goes_on(self):
        sleeper = subprocess.Popen(["sleep", "4242.25"])
        self.addCleanup(sleeper.wait)
        self.addCleanup(sleeper.kill)
        state = lambda: pathlib.Path(f"/proc/{sleeper.pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
        pid = cluster.wait("it runs", lambda: cluster.process("sleep", "4242.25"))
        self.assertEqual(pid, sleeper.pid)
        with cluster.standing_still(pid):
            cluster.wait("it stands still", lambda: state() == "T")
        cluster.wait("it goes on", lambda: state() == "S")
        with self.assertRaises(cluster.Failed):
            cluster.process("sleep", "no such argument")

    def test_others_may_end_while_they_are_looked_at(self):
        gone = mock.Mock(read_text=mock.Mock(side_effect=ProcessLookupError))
        with mock.patch.object(pathlib.Path, "glob", lambda *_: [gone]), self.assertRaises(cluster.Failed):
            cluster.process("sleep")


class Hostlist(unittest.TestCase):
    def test_names(self):
        self.assertEqual(cluster.expand_hostlist("cpu-1"), {"cpu-1"})
        self.assertEqual(cluster.expand_hostlist("cpu-[0-2,5],extra-1"), {"cpu-0", "cpu-1", "cpu-2", "cpu-5", "extra-1"})


class SoakJudgement(unittest.TestCase):
    """The result for a job depends only on the files that the job leaves."""

    def setUp(self):
        self.dir = tempfile.TemporaryDirectory()
        self.addCleanup(self.dir.cleanup)
        patched = mock.patch.object(soak, "PROOFS", pathlib.Path(self.dir.name))
        patched.start()
        self.addCleanup(patched.stop)
        self.soak = soak.Soak(None, 1)

    def job(self, name, *starts, done=True, known=True):
        if starts:
            pathlib.Path(self.dir.name, f"{name}.begun").write_text("".join(f"{at} {nodes}\n" for at, nodes in starts))
        if done:
            pathlib.Path(self.dir.name, f"{name}.done").write_text(f"{starts[-1][0] + 5} {starts[-1][1]}\n")
        if known:
            self.soak.submitted[name] = "7"
        else:
            self.soak.unknown.add(name)

    def judged(self):
        return list(self.soak.judge())

    def test_done(self):
        self.job("a", (100, "cpu-1"))
        self.assertEqual(self.judged(), [])

    def test_never_done_is_lost(self):
        self.job("a", (100, "cpu-1"), done=False)
        self.job("b", done=False)
        self.assertEqual(len(self.judged()), 2)

    def test_never_begun_and_forgotten_by_a_killed_slurmctld(self):
        self.job("a", done=False)
        self.soak.answered["a"] = 100
        self.soak.kills = [110]
        self.assertEqual(self.judged(), [])
        self.soak.kills = [150]
        self.assertEqual(len(self.judged()), 1)

    def test_a_start_that_was_not_written_down(self):
        self.job("a", (100, "cpu-1"), (120, "cpu-2"), (130, "cpu-2"))
        self.soak.kills = [102]
        self.assertEqual(self.judged(), [])

    def test_started_again_for_no_reason(self):
        self.job("a", (100, "cpu-[1-2]"), (200, "cpu-3"))
        self.assertEqual(len(self.judged()), 1)

    def test_started_again_for_a_machine(self):
        self.job("a", (100, "cpu-[1-2]"), (200, "cpu-3"))
        self.soak.outages = [(150, 500, {"cpu-2"})]
        self.assertEqual(self.judged(), [])
        self.soak.outages = [(150, 500, {"cpu-3"})]
        self.assertEqual(len(self.judged()), 1)
        self.soak.outages = [(10, 90, {"cpu-2"})]
        self.assertEqual(len(self.judged()), 1)

    def test_started_again_for_a_worker_that_was_deleted_in_its_first_second(self):
        self.job("a", (100, "cpu-[1-2]"), (200, "cpu-3"))
        for deletion, wrong in ((101.5, "cpu-2"), 0), ((105, "cpu-2"), 1), ((99, "cpu-2"), 1), ((101.5, "cpu-3"), 1):
            self.soak.deletions = [deletion]
            self.assertEqual(len(self.judged()), wrong, deletion)

    def test_ended_right_before_slurmctld_was_killed(self):
        self.job("a", (100, "cpu-1"), (200, "cpu-3"))
        self.soak.kills = [206]
        self.assertEqual(self.judged(), [])
        self.soak.kills = [230]
        self.assertEqual(len(self.judged()), 1)

    def test_an_end_that_slurm_missed(self):
        self.job("a", (100, "cpu-1"))
        self.soak.missed = {"a"}
        self.assertEqual(len(self.judged()), 1)
        self.soak.kills = [110]
        self.assertEqual(self.judged(), [])

    def test_submission_without_an_answer(self):
        self.job("never", done=False, known=False)
        self.assertEqual(self.judged(), [])
        self.job("lost", (100, "cpu-1"), done=False, known=False)
        self.assertEqual(len(self.judged()), 1)


if __name__ == "__main__":
    unittest.main()
