"""What the host shows beside the log joins a verdict: it decides a cause, or it is evidence beside one."""

from typing import Any

from transcripts import NO_MODULE, SGLANG_LOADS, Transcript

from vigil import fact_parts, facts

OOM = "Memory cgroup out of memory: Killed process {pid} (python) total-vm:9kB, anon-rss:8kB, UID:0"
LOST_CARD = "NVRM: Xid (PCI:0000:3b:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus."
PAGE_FAULT = "NVRM: Xid (PCI:0000:01:00): 31, pid=100, name=python3, Ch 00000008, MMU Fault"
NO_SPACE = "OSError: [Errno 28] No space left on device"
CUDA_OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB."
TAKEN = "OSError: [Errno 98] Address already in use"
MIB, GIB = 1 << 20, 1 << 30


def oom(pid: int = 100, ago_s: float = 0.0, *, ours: bool | None = True) -> fact_parts.KernelLine:
    return fact_parts.KernelLine(what="oom_kill", text=OOM.format(pid=pid), ago_s=ago_s, pid=pid, ours=ours)


def xid(text: str, pid: int | None = None, *, ours: bool | None = None) -> fact_parts.KernelLine:
    return fact_parts.KernelLine(what="xid", text=text, ago_s=0.2, pid=pid, ours=ours)


def room(path: str, free: int, total: int, **more: Any) -> fact_parts.Room:
    return fact_parts.Room(path=path, free_bytes=free, total_bytes=total, **more)


class Story(Transcript):
    """A launched server that dies at 6 s, after its host was looked at."""

    def __init__(self, *lines: str) -> None:
        super().__init__()
        self.launched().main(0.2).log(1.0, SGLANG_LOADS, *lines)

    def kernel(self, *lines: fact_parts.KernelLine, at_s: float = 6.0) -> "Story":
        self.take(facts.KernelSaid(at_s=at_s, lines=lines))
        return self

    def rooms(self, *rooms: fact_parts.Room) -> "Story":
        self.take(facts.RoomSeen(at_s=6.0, rooms=rooms))
        return self

    def held(self, *holders: fact_parts.Holder, at_s: float = 2.0) -> "Story":
        self.take(facts.PortHeld(at_s=at_s, port=30000, holders=holders))
        return self

    def gpus(self, *gpus: fact_parts.GpuMemory) -> "Story":
        self.take(facts.GpusSeen(at_s=6.0, gpus=gpus))
        return self

    def dies(self, **how: Any) -> "Story":
        self.exited(6.0, **how).root(6.0, **how)
        return self

    @property
    def told(self) -> list[str]:
        return [one.text for one in self.verdict.evidence[1:]]

    @property
    def code(self) -> str | None:
        return self.verdict.cause.code if self.verdict.cause else None


# --- the kernel's log


def test_silent_death_of_a_server_whose_worker_the_kernel_killed_is_for_memory() -> None:
    story = Story().kernel(oom(pid=200), at_s=5.0).dies(code=0)
    assert story.code == "MEM003"
    assert story.told == [f"the kernel's log, 1.0 s before the end: {OOM.format(pid=200)}"]
    assert story.verdict.evidence[1].fact == 5  # that is where a person finds it in the trace


def test_kill_for_memory_goes_before_what_is_left_behind() -> None:
    story = Story("RuntimeError: Connection closed by peer [127.0.0.1]:1").kernel(oom(pid=200)).dies(code=1)
    assert story.code == "MEM003"


def test_kill_long_before_the_end_is_told_and_explains_nothing() -> None:
    story = Story(NO_MODULE).kernel(oom(pid=200, ago_s=600.0)).dies(code=1)
    assert story.code == "IMP001"
    assert len(story.told) == 1


def test_shell_that_reports_a_kill_was_hit_by_the_one_at_that_moment() -> None:
    assert Story().kernel(oom(pid=200, ago_s=1.0, ours=None)).dies(code=137).code == "MEM003"
    assert Story().kernel(oom(pid=200, ago_s=30.0, ours=None)).dies(code=137).code == "SIG001"
    assert (
        Story().kernel(oom(pid=200, ago_s=1.0, ours=None)).dies(signal=9).code == "SIG001"
    )  # the kernel names another


def test_kill_of_unknown_whose_is_told_with_its_doubt_where_nothing_explains_the_end() -> None:
    story = Story().kernel(oom(pid=200, ago_s=1.0, ours=None)).dies(code=1)
    assert story.code is None
    assert story.told[0].endswith("(whether that was a process of this server is not known)")
    assert Story(NO_MODULE).kernel(oom(pid=200, ago_s=1.0, ours=None)).dies(code=1).told == []


def test_kill_of_a_process_that_the_log_names_is_its_own() -> None:
    story = Story("(EngineCore_DP0 pid=200) INFO loading").kernel(oom(pid=200, ago_s=8.0, ours=None)).dies(code=0)
    assert story.code == "MEM003"
    assert Story("(EngineCore_DP0 pid=2001) INFO").kernel(oom(pid=200, ago_s=8.0, ours=None)).dies(code=0).code is None


def test_worker_that_the_kernel_killed_behind_a_server_that_goes_on_is_named_so() -> None:
    story = Transcript().ready(10)
    story.take(facts.KernelSaid(at_s=30.0, lines=(oom(pid=200),)))
    story.child_died(30, worker=True, pid=200).fail(30.1, 500)
    story.ticks(60.0)
    assert "OOM killer" in story.verdict.reason
    assert OOM.format(pid=200) in story.verdict.evidence[-1].text


def test_attempts_that_the_kernel_ends_are_alike_whoever_saw_it() -> None:
    story = Transcript().launched()
    for n in range(3):
        pid, at_s = 101 + n, 10.0 * n
        story.main(at_s + 1, pid)
        if n != 1:
            story.take(facts.KernelSaid(at_s=at_s + 5, lines=(oom(pid=pid),)))
        story.exited(at_s + 5, pid, signal=9, oom_killed=True)
    assert (story.word, story.verdict.cause.code) == ("crash_looping", "MEM003")
    assert any("kernel's log" in one.text for one in story.verdict.evidence)


def test_gpu_that_fell_off_the_bus_explains_an_abort() -> None:
    story = Story().kernel(xid(LOST_CARD)).dies(signal=6)
    assert (story.code, story.verdict.cause.text) == ("GPU001", LOST_CARD)
    assert "Xid 79" in story.verdict.cause.advice


def test_gpu_error_of_yesterday_explains_nothing_today() -> None:
    old = fact_parts.KernelLine(what="xid", text=LOST_CARD, ago_s=86_400.0)
    assert Story().kernel(old).dies(signal=6).code == "SIG001"


def test_gpu_error_does_not_explain_what_has_its_reason() -> None:
    story = Story(NO_MODULE).kernel(xid(LOST_CARD)).dies(code=1)
    assert story.code == "IMP001"
    assert len(story.told) == 1


def test_page_fault_of_our_process_is_evidence_and_anothers_is_none() -> None:
    story = Story().kernel(xid(PAGE_FAULT, 100, ours=True)).dies(signal=6)
    assert (story.code, len(story.told)) == ("SIG001", 1)
    assert Story().kernel(xid(PAGE_FAULT, 100, ours=False)).dies(signal=6).told == []
    assert Story().kernel(xid(LOST_CARD.replace("'<unknown>'", "77"), 77, ours=False)).dies(signal=6).code == "SIG001"


# --- room


def test_full_shared_memory_makes_a_bus_error_certain() -> None:
    story = Story().rooms(room("/dev/shm", 0, 64 * MIB)).dies(signal=7)
    assert (story.code, story.verdict.cause.sure) == ("SHM001", 0.95)
    assert story.told == [
        "/dev/shm is full: 0 bytes of 64.0 MiB free (the size that Docker gives where nobody asks for more)"
    ]


def test_shared_memory_of_dockers_size_makes_a_bus_error_likely() -> None:
    story = Story().rooms(room("/dev/shm", 64 * MIB, 64 * MIB)).dies(signal=7)
    assert (story.code, story.verdict.cause.sure) == ("SHM001", 0.8)


def test_bus_error_beside_roomy_shared_memory_stays_one() -> None:
    assert Story().rooms(room("/dev/shm", 20 * GIB, 24 * GIB)).dies(signal=7).code == "SIG001"
    assert Story().rooms(room("/dev/shm", 0, 64 * MIB)).dies(signal=11).code == "SIG001"


def test_full_disk_is_named_with_what_lies_there() -> None:
    full = room("/data", 0, 100 * GIB, places=("/data/hf",))
    story = Story(NO_SPACE).rooms(room("/", 50 * GIB, 100 * GIB, places=("/tmp",)), full).dies(code=1)
    assert story.code == "DISK001"
    assert story.told == ["/data is full: 0 bytes of 100.0 GiB free (/data/hf)"]


def test_disk_that_had_no_room_for_what_was_written_is_told_with_what_it_has() -> None:
    story = (
        Story(NO_SPACE).rooms(room("/", 5 * GIB, 100 * GIB, places=("/tmp",)), room("/dev/shm", GIB, GIB)).dies(code=1)
    )
    assert story.told == ["/: 5.0 GiB of 100.0 GiB free (/tmp)"]


def test_disk_without_inodes_is_full() -> None:
    story = Story(NO_SPACE).rooms(room("/data", 50 * GIB, 100 * GIB, free_files=0)).dies(code=1)
    assert story.told == ["/data takes no more files: its inodes are used up"]


def test_no_space_where_only_shared_memory_is_full_is_that() -> None:
    disks = (room("/", 50 * GIB, 100 * GIB), room("/dev/shm", 0, 64 * MIB))
    assert Story(NO_SPACE).rooms(*disks).dies(code=1).code == "SHM001"
    assert Story(NO_SPACE).rooms(room("/", 0, 100 * GIB), disks[1]).dies(code=1).code == "DISK001"


def test_full_disk_is_told_beside_a_death_without_a_word() -> None:
    story = Story().rooms(room("/data", 3 * MIB, 100 * GIB)).dies(code=1)
    assert (story.code, story.told) == (None, ["/data is full: 3.0 MiB of 100.0 GiB free"])


def test_room_that_is_left_is_not_told_beside_another_cause() -> None:
    small_and_free = room("/dev/shm", 64 * MIB, 64 * MIB)
    large_and_nearly_full = room("/data", 90 * GIB, 20_000 * GIB)
    assert Story(NO_MODULE).rooms(small_and_free, large_and_nearly_full).dies(code=1).told == []


# --- holders

SQUATTER = fact_parts.Holder(pid=123, name="python", argv=("python", "-m", "x"), uid=1000, server="s2")


def test_holder_of_a_taken_port_is_told() -> None:
    story = Story(TAKEN).held(SQUATTER).port(2.0, "foreign", 123).dies(code=1)
    assert story.code == "PORT001"
    assert story.told == ["port 30000 is held by pid 123 (python -m x), uid 1000, which vigil started as s2"]


def test_holder_that_cannot_be_seen_is_told_by_its_user() -> None:
    story = Story(TAKEN).held(fact_parts.Holder(uid=1000)).port(2.0, "foreign", None).dies(code=1)
    assert story.told == ["port 30000 is held by a process of uid 1000 that cannot be seen from here"]


def test_holder_of_another_port_than_the_lines_is_not_told() -> None:
    line = "[Errno 98] error while attempting to bind on address ('127.0.0.1', 31008): address already in use"
    assert Story(line).held(SQUATTER).port(2.0, "foreign", 123).dies(code=1).told == []


def test_holder_that_went_is_not_told() -> None:
    assert Story(TAKEN).held(SQUATTER).port(2.0, "foreign", 123).closed(3.0).dies(code=1).told == []  # type: ignore[attr-defined]


def test_server_whose_port_another_holds_says_who_it_is() -> None:
    story = Story().held(SQUATTER).port(2.0, "foreign", 123).ticks(30.0)
    assert (story.word, story.verdict.cause.code) == ("unhealthy", "PORT001")
    assert "vigil started as s2" in story.verdict.evidence[-1].text


def test_gpu_memory_held_by_others_is_told_where_it_ran_out() -> None:
    holders = (
        fact_parts.Holder(pid=123, argv=SQUATTER.argv, uid=1000, server="s2", used_bytes=120 * GIB),
        fact_parts.Holder(pid=100, ours=True, used_bytes=10 * GIB),
    )
    gpu = fact_parts.GpuMemory(index=0, name="H200", used_bytes=130 * GIB, total_bytes=140 * GIB, holders=holders)
    by_whom = "120.0 GiB by pid 123 (python -m x), uid 1000, which vigil started as s2; 10.0 GiB by this server"
    assert Story(CUDA_OOM).gpus(gpu).dies(code=1).told == [f"GPU 0 (H200): 130.0 GiB of 140.0 GiB in use: {by_whom}"]
    assert Story(NO_MODULE).gpus(gpu).dies(code=1).told == []


def test_second_life_has_nothing_of_what_the_host_showed_the_first() -> None:
    story = Story().kernel(oom(pid=100)).rooms(room("/data", 0, GIB)).exited(6.0, code=1)
    story.main(7.0, 101).exited(8.0, 101, code=1).root(8.0, code=1)
    assert story.verdict.cause is None
    assert not any("kernel" in one.text or "full" in one.text for one in story.verdict.evidence)


def test_stop_that_was_asked_for_has_no_cause() -> None:
    story = Story().kernel(oom(pid=100))
    story.stop(5.5).exited(6.0, signal=9).root(6.0, signal=9, asked_by="eve")
    assert (story.word, story.verdict.cause) == ("stopped", None)
