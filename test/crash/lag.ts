/**
 * How slow the machine is while a test runs: the longest time that one small question to the store took, with the wait for its turn. A worker that frees what
 * another held needs such turns too, so a limit in milliseconds grows by a few of them. On a quiet machine they take some milliseconds.
 */
import type { Client } from '../../src/index.ts'
import { pause } from './processes.ts'

const EVERY = 50
/** A look is a question and a write, each of which may have to wait as long. */
const TURNS = 2

export interface Lag {
  /** Ends the measurement: by how many milliseconds a worker may be late because of the machine. */
  end(): Promise<number>
}

export const measureLag = (client: Client): Lag => {
  let isOver = false
  let longest = 0
  const measure = async (): Promise<void> => {
    while (!isOver) {
      const begun = performance.now()
      await pause(EVERY)
      await client.count({ status: 'running' })
      longest = Math.max(longest, performance.now() - begun - EVERY)
    }
  }
  const measuring = measure()
  return {
    end: async () => {
      isOver = true
      await measuring
      return Math.round(TURNS * longest)
    },
  }
}
