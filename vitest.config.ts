import { fileURLToPath } from 'node:url'
import { defineConfig } from 'vitest/config'

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
const CRASH = ['test/crash/**/*.test.ts', 'test/slow/**/*.test.ts', 'test/kv/faults.test.ts']
/** Where milliseconds decide: leases that must hold or end in time, rates, shares of the machine, CPU at rest. */
const TIMED = [
  'test/crash/batch.test.ts',
  'test/crash/busy-claim.test.ts',
  'test/crash/event-loop.test.ts',
  'test/crash/interruption.test.ts',
  'test/crash/isolate.test.ts',
  'test/crash/kill.test.ts',
  'test/crash/producers.test.ts',
  'test/crash/races.test.ts',
  'test/crash/stop-continue.test.ts',
  'test/slow/dead-letters.test.ts',
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
]

/**
 * quick: core, memory, SQLite; neither other processes nor servers. doors: the command line, the examples, the benchmark.
 * crash: real processes, killed, and long campaigns of faults. timed: the same, each file alone on the machine. servers: on real servers, each started by
 * test/servers/global-setup.ts when the first file asks for it; also what every store must do. browser: the dashboard in a
 * real Chromium.
 */
export default defineConfig({
  test: {
    // By default one core is left idle, and on two cores that is half of them.
    maxWorkers: '100%',
    projects: [
      {
        test: {
          name: 'quick',
          include: ['test/**/*.test.ts'],
          exclude: [...CRASH, ...BROWSER, ...DOORS, ...ON_SERVERS],
          // Quicker to start than processes, and there is a file for every second.
          pool: 'threads',
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
            'test/coalescing.test.ts',
            'test/payloads.test.ts',
            'test/instants.test.ts',
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
          fileParallelism: false,
        },
      },
    ],
  },
})
