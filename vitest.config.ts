import { availableParallelism } from 'node:os'
import { fileURLToPath } from 'node:url'
import { defineConfig } from 'vitest/config'
import { BaseSequencer, type TestSpecification } from 'vitest/node'

/** Every SQLite store starts a thread, every crash test many processes: what they compile, they compile once. */
process.env['NODE_COMPILE_CACHE'] ??= fileURLToPath(new URL('node_modules/.cache/compiled', import.meta.url))

const ON_SERVERS = [
  'test/servers/**/*.test.ts',
  'test/postgres/**/*.test.ts',
  'test/nats/**/*.test.ts',
  'test/s3/server/**/*.test.ts',
  'test/s3/simulated/**/*.test.ts',
]
/** In a real browser. */
const BROWSER = ['test/dashboard/**/*.test.ts']
/** Real processes that are killed, and campaigns of faults that take long. */
const CRASH = [
  'test/crash/**/*.test.ts',
  'test/slow/**/*.test.ts',
  'test/simulation/seeds.test.ts',
  'test/simulation/s3-drain.test.ts',
  'test/kv/faults.test.ts',
]
/** Where milliseconds decide and the lag of the machine is not allowed for: short leases, rates, shares of the machine, CPU at rest. */
const TIMED = [
  'test/crash/batch.test.ts',
  'test/crash/event-loop.test.ts',
  'test/crash/isolate.test.ts',
  'test/crash/races.test.ts',
  'test/crash/stop-continue.test.ts',
  'test/slow/dead-letters.test.ts',
  'test/slow/fair-shares.test.ts',
  'test/slow/idle.test.ts',
  'test/slow/many.test.ts',
]
/** Through the doors: the programs as a user runs them, from dist. */
const DOORS = [
  'test/cli/**/*.test.ts',
  'test/http/http-only.test.ts',
  'test/http/python.test.ts',
  'test/examples.test.ts',
  'test/json-file-store.test.ts',
  'test/bench.test.ts',
  'test/start/sqlite.test.ts',
]

/** Begun first, so that none runs on alone at the end. Those that wait stand between those that compute. */
const LONG = [
  'test/nats/restart.test.ts',
  'test/postgres/interruption.test.ts',
  'test/postgres/http-only.test.ts',
  'test/s3/simulated/costs.test.ts',
  'test/s3/simulated/wake.test.ts',
  'test/s3/server/walk.test.ts',
  'test/postgres/keeper.test.ts',
  'test/stores.test.ts',
  'test/s3/server/busy-claim.test.ts',
  'test/nats/conformance.test.ts',
  'test/nats/interruption.test.ts',
  'test/postgres/move.test.ts',
  'test/coalescing.test.ts',
  'test/nats/idle.test.ts',
  'test/s3/server/conformance.test.ts',
  'test/s3/server/faults.test.ts',
  'test/s3/server/restart.test.ts',
  'test/step-corners.test.ts',
  'test/simulation/seeds.test.ts',
  'test/crash/interruption.test.ts',
  'test/crash/move.test.ts',
  'test/crash/scheduler.test.ts',
  'test/crash/kill.test.ts',
  'test/http/http-only.test.ts',
  'test/cli/golden.test.ts',
  'test/bench.test.ts',
  'test/cli/examples.test.ts',
  'test/sqlite/thread-death.test.ts',
]

/** By itself it knows how long files take only from earlier runs, and a clean clone has had none. */
class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const placeOf = ({ moduleId }: TestSpecification): number => {
      const place = LONG.findIndex((path) => moduleId.endsWith(`/${path}`))
      return place === -1 ? LONG.length : place
    }
    return (await super.sort(files)).sort((a, b) => placeOf(a) - placeOf(b))
  }
}

/**
 * quick: core, memory, SQLite; neither other processes nor servers. doors: the command line, the examples, the benchmark.
 * crash: real processes, killed, and long campaigns of faults. timed: the same, each file alone on the machine. servers: on real servers, each started by
 * test/servers/global-setup.ts when the first file asks for it; also what every store must do. browser: the dashboard in a
 * real Chromium.
 */
export default defineConfig({
  test: {
    // While one file waits another computes.
    maxWorkers: availableParallelism() + 1,
    sequence: { sequencer: LongestFirst },
    reporters: ['default', fileURLToPath(new URL('scripts/repeated-tests.ts', import.meta.url))],
    projects: [
      {
        test: {
          name: 'quick',
          include: ['test/**/*.test.ts'],
          exclude: [...CRASH, ...BROWSER, ...DOORS, ...ON_SERVERS],
          // Quicker to start than processes, and there is a file for every second. Files share their modules: to import them again for each costs
          // as much as a third of all tests. So no file sets a hook for others, and one that replaces modules puts them back.
          pool: 'threads',
          isolate: false,
          testTimeout: 30_000,
        },
      },
      { test: { name: 'doors', include: DOORS, testTimeout: 60_000 } },
      {
        test: {
          name: 'crash',
          include: CRASH,
          exclude: TIMED,
          testTimeout: 300_000,
          hookTimeout: 60_000,
        },
      },
      {
        test: { name: 'timed', include: TIMED, testTimeout: 300_000, hookTimeout: 60_000, fileParallelism: false },
      },
      {
        test: {
          name: 'servers',
          include: [
            'test/stores.test.ts',
            'test/batches.test.ts',
            'test/coalescing.test.ts',
            'test/signals.test.ts',
            'test/step-corners.test.ts',
            'test/payloads.test.ts',
            'test/instants.test.ts',
            'test/late-keeper.test.ts',
            ...ON_SERVERS,
          ],
          globalSetup: ['test/servers/global-setup.ts'],
          testTimeout: 60_000,
          hookTimeout: 60_000,
        },
      },
      {
        test: {
          name: 'browser',
          include: BROWSER,
          globalSetup: ['test/dashboard/global-setup.ts'],
          expect: { poll: { timeout: 20_000 } },
          testTimeout: 60_000,
          hookTimeout: 60_000,
        },
      },
    ],
  },
})
