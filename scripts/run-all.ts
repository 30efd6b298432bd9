/** Runs all commands one after another and reports which failed and how long each took, so that one failure does not hide the others. */
import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

export interface Step {
  readonly name: string
  readonly command: string
  readonly args: readonly string[]
}

export interface Ended {
  readonly name: string
  readonly passed: boolean
  readonly seconds: number
  /** Tests that failed first and passed when they were run again: scripts/repeated-tests.ts counts them. */
  readonly repeated: number
}

export const runAll = (steps: readonly Step[], stdio: 'inherit' | 'ignore' = 'inherit'): Ended[] => {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-repeated-'))
  const marks = join(folder, 'marks')
  try {
    return steps.map(({ name, command, args }) => {
      writeFileSync(marks, '')
      const startedAt = performance.now()
      const env = { ...process.env, HOLDFAST_REPEATED_TESTS: marks }
      const passed = spawnSync(command, args, { stdio, env }).status === 0
      const seconds = Math.round((performance.now() - startedAt) / 1000)
      return { name, passed, seconds, repeated: readFileSync(marks, 'utf8').length }
    })
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

export const lineOf = ({ name, passed, seconds, repeated }: Ended): string =>
  `${passed ? 'ok  ' : 'FAIL'}  ${name.padEnd(8)}  ${String(seconds).padStart(4)} s${repeated > 0 ? `, ${repeated} repeated` : ''}`
