/** Runs all commands one after another and reports which failed, so that one failure does not hide the others. */
import { spawnSync } from 'node:child_process'

export interface Step {
  readonly name: string
  readonly command: string
  readonly args: readonly string[]
}

/** Returns the names of those that failed. */
export const runAll = (steps: readonly Step[], stdio: 'inherit' | 'ignore' = 'inherit'): string[] =>
  steps.flatMap(({ name, command, args }) => (spawnSync(command, args, { stdio }).status === 0 ? [] : [name]))
