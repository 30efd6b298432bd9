/** What happened, written down outside the store by the process that did it: one file of JSON lines each. */
import { openSync, readdirSync, readFileSync, writeSync } from 'node:fs'
import { join } from 'node:path'

/** `mono` is CLOCK_MONOTONIC in milliseconds, which all processes of one boot share: lines of many files can be put in order. */
export interface WitnessLine {
  readonly what: string
  readonly pid: number
  readonly mono: number
  readonly at: number
  readonly task?: string
  readonly fence?: number
  readonly worker?: string
  readonly [fact: string]: unknown
}

export type Witness = (what: string, facts?: Record<string, unknown>) => void

const ENDING = '.witness'

export const openWitness = (folder: string): Witness => {
  const file = openSync(join(folder, `${process.pid}${ENDING}`), 'a', 0o666)
  return (what, facts = {}) => {
    const line = { what, pid: process.pid, mono: Number(process.hrtime.bigint()) / 1e6, at: Date.now(), ...facts }
    writeSync(file, `${JSON.stringify(line)}\n`)
  }
}

/** Lines of one process; a line cut short by a kill is left out. */
export const readWitness = (folder: string, pid: number): WitnessLine[] => {
  try {
    return linesOf(readFileSync(join(folder, `${pid}${ENDING}`), 'utf8'))
  } catch {
    return []
  }
}

/** Of all processes, in the order in which things happened. */
export const readWitnesses = (folder: string): WitnessLine[] =>
  readdirSync(folder)
    .filter((name) => name.endsWith(ENDING))
    .flatMap((name) => linesOf(readFileSync(join(folder, name), 'utf8')))
    .sort((a, b) => a.mono - b.mono)

const linesOf = (text: string): WitnessLine[] =>
  text
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line) as WitnessLine)

/** Runs that have begun and not ended. */
export const unfinished = (lines: readonly WitnessLine[]): WitnessLine[] => {
  const ended = new Set(lines.filter(({ what }) => what === 'end').map(({ task, fence }) => `${task}/${fence}`))
  return lines.filter(({ what, task, fence }) => what === 'start' && !ended.has(`${task}/${fence}`))
}
