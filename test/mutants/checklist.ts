/** For statements of the checklist whose tests once could not fail: a bug against each. */
import type { Mutant } from './mutant.ts'

export const CHECKLIST: readonly Mutant[] = [
  {
    file: 'core/machine.ts',
    find: 'const availableAt = atMostLast(now + delay)',
    replace: 'const availableAt = now',
    breaks: '[I10][R05] after a crash a sleeping task is picked up at once',
    tests: ['crash/restart.test.ts'],
    project: 'crash',
  },
  {
    file: 'core/machine.ts',
    find: '  const count = task.retryCount + 1\n  return move(\n    task,\n    name,',
    replace:
      "  const count = name === 'lose-lease' ? task.retryCount : task.retryCount + 1\n  return move(\n    task,\n    name,",
    breaks: '[A23] a run that a crash cut short is not counted',
    tests: ['crash/restart.test.ts'],
    project: 'crash',
  },
  {
    file: 'store/sql/rows.ts',
    find: '  task.expiresAt,\n',
    replace: '  null,\n',
    breaks: '[J13] the expiry of a task is forgotten by the store',
    tests: ['crash/restart.test.ts'],
    project: 'crash',
  },
  {
    file: 'core/transfer/replacement.ts',
    find: 'key: replacementKey(dead), replayOf',
    replace: 'key: dead.idempotencyKey ?? replacementKey(dead), replayOf',
    breaks: '[E10] a replay as new takes the key of the dead task',
    tests: ['runtime/dead-letters/replay-as-new.test.ts'],
  },
  {
    file: 'runtime/schedules/schedules.ts',
    find: '    if (signal !== undefined) return this.#until(signal, (schedules) => schedules.list())\n',
    replace: '    void signal\n',
    breaks: '[D15] a call takes no notice of its signal',
    tests: ['runtime/signals.test.ts'],
  },
  {
    file: 'store/memory/store.ts',
    find: 'readonly leaseTtl = 5_000',
    replace: 'readonly leaseTtl = 15_000',
    breaks: '[F09] the default lease is longer than 5 s',
    tests: ['runtime/worker/leases.test.ts'],
  },
  {
    file: 'core/machine.ts',
    find: "return move(task, name, 'failed', actor, { lease: null, completedAt: now, lastError }, facts)",
    replace: "return move(task, name, 'failed', actor, { lease: null, completedAt: now }, facts)",
    breaks: '[H08] the last failure is not recorded with the task',
    tests: ['runtime/tasks/claiming.test.ts'],
  },
  {
    file: 'core/schedules/recurrence.ts',
    find: '? [newest] : [], newest }',
    replace: '? newestSlots(recurrence, cursor, now, MOST_CAUGHT_UP) : [], newest }',
    breaks: '[M03] downtime is followed by a burst',
    tests: ['runtime/schedules/scheduler.test.ts'],
  },
  {
    file: 'runtime/worker/stuck.ts',
    find: '    this.#host.freed(attempts)\n',
    replace: '',
    breaks: '[L01] a poison that hangs keeps its slots for ever',
    tests: ['runtime/worker/poison.test.ts'],
  },
  {
    file: 'runtime/monitor.ts',
    find: '    this.#sweeper.start()\n',
    replace: '',
    breaks: '[O01] a monitor neither expires nor times out',
    tests: ['runtime/cleanup/sweeping.test.ts'],
  },
  {
    file: 'runtime/store-time.ts',
    find: "this.#isHost = store.capabilities.has('host-clock')",
    replace: "this.#isHost = store.capabilities.has('host-clock') || clock.wall() > 0",
    breaks: '[S01][M05] the clock of the host counts instead of the store’s',
    tests: ['runtime/two-clocks.test.ts'],
  },
  {
    file: 'runtime/worker/fetch/fetcher.ts',
    find: 'Math.min(Math.max(soonest, now + untilNext), now + pollInterval)',
    replace: 'Math.max(soonest, now + (found.next === null ? 86_400_000 : untilNext))',
    breaks: '[D12] a worker that was woken too early does not look again',
    tests: ['runtime/worker/fetcher.test.ts'],
  },
]
