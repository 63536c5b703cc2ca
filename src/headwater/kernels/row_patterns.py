"""The search for a row pattern: a small machine that walks rows with a program, and goes back where a way ends.

The program (made by `sql.row_patterns.automaton`) takes rows one by one, each for a variable whose condition is true
for it. Of several ways the preferred one is tried first; what is left is on a stack. The first way that reaches
`ACCEPT` is the match, so nothing is ever compared with anything better.

A condition that looks at one place only was computed for all rows beforehand (``holds``). What depends on the rows
taken so far is code (`row_conditions`). For it the machine keeps, at each depth of its way, how many rows each set of
variables has (``counts``), which ones (``lists``), and the aggregates so far (``sums``): going back to an earlier depth
restores all of it at no cost.

Where conditions do not depend on the way, a row and an instruction from which no way led to a match are remembered
(``memo``), over all starts, once a search has become long, so that it is linear however the quantifiers are nested.

The machine stops and says why: to be given more room, to be told whether a condition is true that only Python can
compute, after many steps, or at an error. Its whole state is in arrays, and the next call goes on where it stopped.
Steps are counted over all starts, so a call returns soon also where many starts take some steps each, and whoever calls
can hold the count against a limit, or stop.
"""

# mypy: disable-error-code="arg-type, assignment, call-arg, index, return-value, unreachable, var-annotated"

from __future__ import annotations

import numpy as np

from headwater.kernels.arrays import ByteRows, Bytes, DoubleRows, Doubles, Positions, Rows
from headwater.kernels.compiled import kernel
from headwater.kernels.row_conditions import MOST_DEEP, UNKNOWN, holds_at, take_row

__all__ = [
    "ACCEPT",
    "ANSWER",
    "ASK",
    "ASKED",
    "AT_END",
    "AT_START",
    "BEFORE",
    "BEGIN_LOOP",
    "BEGUN",
    "DEPTH",
    "DONE",
    "EARLIER",
    "EITHER",
    "END_IF_NO_ROW",
    "FULL_OUT",
    "FULL_PATH",
    "FULL_STACK",
    "JUMP",
    "LABELS",
    "MATCHES",
    "NOWHERE_TO_SKIP",
    "PAUSE",
    "ROW",
    "SKIPS_NOTHING",
    "START",
    "STATE",
    "STEPS",
    "TASK",
    "match_rows",
]

_FEW_STEPS = 256
"""Steps of one start before ways are remembered: most searches are over by then."""

# Instructions: op, first, second, and for ROW its number among the instructions that take a row.
ROW, EITHER, JUMP, AT_START, AT_END, BEGIN_LOOP, END_IF_NO_ROW, ACCEPT = range(8)

# What a call ends with.
DONE, ASK, PAUSE, FULL_PATH, FULL_STACK, FULL_OUT, NOWHERE_TO_SKIP, SKIPS_NOTHING = range(8)

# Places in the state. STEPS are those of the start at hand, EARLIER those of all starts before it, and BEGUN what
# EARLIER was when the task began. BEFORE is how many matches there were then.
(
    TASK, START, RUNNING, PC, DEPTH, TOP, ANSWER, STEPS,
    MATCHES, LABELS, ASKED, FURTHEST, BEFORE, EARLIER, BEGUN, STATE,
) = range(16)  # fmt: skip


@kernel
def match_rows(  # noqa: C901 (one loop, so that all of its state stays in registers)
    program: Rows,
    holds: ByteRows,
    spans: Rows,
    code: Rows,
    integers: Positions,
    doubles: Doubles,
    slots: Rows,
    ints: Rows,
    floats: DoubleRows,
    int_marks: ByteRows,
    float_marks: ByteRows,
    member: ByteRows,
    aggregates: Rows,
    tasks: Rows,
    reach: Positions,
    skip: int,
    skip_set: int,
    most_steps: int,
    memo: Bytes,
    memo_width: int,
    state: Positions,
    stack: Rows,
    loops: Positions,
    path: Positions,
    counts: Rows,
    lists: Rows,
    sums: Rows,
    double_sums: DoubleRows,
    seen: Rows,
    matches: Rows,
    labels: Positions,
) -> int:
    """Find the matches of each task, a partition and its starts, until something has to be asked for.

    A row of ``tasks`` is where the partition begins and ends, and the first start and the end of the starts.
    ``matches`` gets the start of each match, where its labels begin, and how many rows it has; a label is a variable's
    number, doubled, plus one if its row is left out. A call takes ``most_steps`` steps at most.
    """
    rows = reach.size
    whole = np.empty(MOST_DEEP, np.int64)
    double = np.empty(MOST_DEEP, np.float64)
    void = np.empty(MOST_DEEP, np.int64)
    keeping = member.shape[0] + aggregates.shape[0] > 0
    prefix = 0  # rows that every match begins with
    while program[prefix, 0] == ROW:
        prefix += 1
    left = most_steps
    while state[TASK] < tasks.shape[0]:
        low, high = tasks[state[TASK], 0], tasks[state[TASK], 1]
        if state[START] < 0:
            state[START] = tasks[state[TASK], 2]
            state[BEFORE] = state[MATCHES]
            state[BEGUN] = state[EARLIER]
        while state[START] < tasks[state[TASK], 3]:
            start = state[START]
            if state[RUNNING] == 0:
                hopeless = False
                for i in range(prefix):
                    if start + i >= reach[start] or holds[program[i, 1], start + i] == 0:
                        hopeless = True
                        break
                if hopeless:
                    state[START] = start + 1
                    continue
                state[RUNNING] = 1
                state[PC] = 0
                state[DEPTH] = 0
                state[TOP] = 0
                state[STEPS] = 0
                state[FURTHEST] = start - 1
            pc, depth, top = state[PC], state[DEPTH], state[TOP]
            steps, furthest = state[STEPS], state[FURTHEST]
            paused = steps + left
            end = reach[start]
            status = -1
            matched = False
            while True:
                steps += 1
                if steps >= paused:
                    status = PAUSE
                    break
                op = program[pc, 0]
                fails = False
                if op == ROW:
                    row = start + depth
                    variable = program[pc, 1]
                    known = np.int64(0) if row >= end else np.int64(holds[variable, row])
                    marking = memo_width > 0 and steps > _FEW_STEPS
                    if known != 0 and marking:
                        place = (row - low) * memo_width + (program[pc, 3] >> 3)
                        bit = np.uint8(1 << (program[pc, 3] & 7))
                        if state[ANSWER] < 0 and memo[place] & bit:
                            known = np.int64(0)
                        else:
                            memo[place] |= bit
                            furthest = max(furthest, row)
                    if known != 0:
                        if depth + 1 >= path.size:
                            status = FULL_PATH
                            if marking:
                                memo[place] &= ~bit
                            break
                        path[depth] = variable * 2 + program[pc, 2]
                        if keeping and not take_row(
                            variable,
                            row,
                            depth,
                            member,
                            counts,
                            lists,
                            aggregates,
                            ints,
                            floats,
                            int_marks,
                            float_marks,
                            sums,
                            double_sums,
                            seen,
                        ):
                            known = UNKNOWN
                        if known == 1 and spans[variable, 0] >= 0:
                            known = holds_at(
                                code,
                                spans[variable, 0],
                                spans[variable, 1],
                                integers,
                                doubles,
                                slots,
                                ints,
                                floats,
                                int_marks,
                                float_marks,
                                start,
                                depth + 1,
                                rows,
                                counts,
                                lists,
                                sums,
                                double_sums,
                                seen,
                                state[MATCHES] - state[BEFORE] + 1,
                                whole,
                                double,
                                void,
                            )
                        elif known == 1 and spans[variable, 0] == -2:
                            known = UNKNOWN
                        if known == UNKNOWN:
                            if state[ANSWER] < 0:
                                state[ASKED] = variable
                                status = ASK
                                if marking:
                                    memo[place] &= ~bit
                                break
                            known = state[ANSWER]
                            state[ANSWER] = -1
                    if known == 1:
                        depth += 1
                        pc += 1
                    else:
                        fails = True
                elif op == EITHER:
                    if top + 1 >= stack.shape[0]:
                        status = FULL_STACK
                        break
                    stack[top, 0] = program[pc, 2]
                    stack[top, 1] = depth
                    top += 1
                    pc = program[pc, 1]
                elif op == JUMP:
                    pc = program[pc, 1]
                elif op == AT_START:
                    fails = start + depth != low
                    pc += 1
                elif op == AT_END:
                    fails = start + depth != high
                    pc += 1
                elif op == BEGIN_LOOP:
                    if top + 1 >= stack.shape[0]:
                        status = FULL_STACK
                        break
                    number = program[pc, 1]
                    stack[top, 0] = -1 - number
                    stack[top, 1] = loops[number]
                    top += 1
                    loops[number] = depth
                    pc += 1
                elif op == END_IF_NO_ROW:
                    pc = program[pc, 2] if loops[program[pc, 1]] == depth else pc + 1
                else:
                    if state[MATCHES] >= matches.shape[0] or state[LABELS] + depth > labels.size:
                        status = FULL_OUT
                        break
                    matched = True
                    break
                if fails:
                    found = False
                    while top > 0:
                        top -= 1
                        if stack[top, 0] < 0:
                            loops[-1 - stack[top, 0]] = stack[top, 1]
                        else:
                            pc = stack[top, 0]
                            depth = stack[top, 1]
                            found = True
                            break
                    if not found:
                        break
            state[PC], state[DEPTH], state[TOP], state[STEPS], state[FURTHEST] = pc, depth, top, steps, furthest
            if status >= 0:
                return status
            left = paused - steps
            state[RUNNING] = 0
            state[EARLIER] += steps
            state[STEPS] = 0
            next_start = start + 1
            if matched:
                matches[state[MATCHES], 0] = start
                matches[state[MATCHES], 1] = state[LABELS]
                matches[state[MATCHES], 2] = depth
                for i in range(depth):
                    labels[state[LABELS] + i] = path[i]
                state[MATCHES] += 1
                state[LABELS] += depth
                if memo_width > 0:
                    for i in range((start - low) * memo_width, (furthest + 1 - low) * memo_width):
                        memo[i] = 0
                if depth > 0 and skip == 0:
                    next_start = start + depth
                elif depth > 0 and skip >= 2:
                    count = counts[skip_set, depth]
                    if count == 0:
                        return NOWHERE_TO_SKIP
                    next_start = start + lists[skip_set, 0 if skip == 2 else count - 1]
                    if next_start == start:
                        return SKIPS_NOTHING
            state[START] = next_start
        state[TASK] += 1
        if memo_width > 0 and state[TASK] < tasks.shape[0] and tasks[state[TASK], 0] != low:
            for i in range((high - low) * memo_width):
                memo[i] = 0
        state[START] = -1
    return DONE
