import { defineConfig } from 'vitest/config'

/** quick: everything that needs neither killed processes nor servers. crash: real processes, killed. */
export default defineConfig({
  test: {
    projects: [
      {
        test: {
          name: 'quick',
          include: ['test/**/*.test.ts'],
          exclude: ['test/crash/**', 'test/slow/**'],
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
    ],
  },
})
