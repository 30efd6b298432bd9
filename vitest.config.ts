import { defineConfig } from 'vitest/config'

const ON_SERVERS = ['test/postgres/**/*.test.ts']

/**
 * quick: everything that needs neither killed processes nor servers. crash: real processes, killed. servers: on real
 * servers, started by test/servers/global-setup.ts; also what every store must do.
 */
export default defineConfig({
  test: {
    projects: [
      {
        test: {
          name: 'quick',
          include: ['test/**/*.test.ts'],
          exclude: ['test/crash/**', 'test/slow/**', ...ON_SERVERS],
          testTimeout: 30_000,
        },
      },
      {
        test: {
          name: 'crash',
          include: ['test/crash/**/*.test.ts', 'test/slow/**/*.test.ts'],
          testTimeout: 300_000,
          hookTimeout: 60_000,
          fileParallelism: false,
        },
      },
      {
        test: {
          name: 'servers',
          include: ['test/stores.test.ts', 'test/payloads.test.ts', ...ON_SERVERS],
          globalSetup: ['test/servers/global-setup.ts'],
          testTimeout: 60_000,
          hookTimeout: 60_000,
          fileParallelism: false,
        },
      },
    ],
  },
})
