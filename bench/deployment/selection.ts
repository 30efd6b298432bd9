/** Selects cells and systems by the options. A name that does not exist is an error. */
import type { Field } from '../systems.ts'
import { CELLS, type Cell, PROCESSES, QUEUES, TYPES } from './cells.ts'
import { type DeployedSystem, SYSTEMS } from './systems.ts'

export interface Filters {
  readonly only: readonly string[]
  readonly types: readonly string[]
  readonly processes: readonly string[]
  readonly queues: readonly string[]
}

/** The numbers filter the drain cells; the other cells do not vary by them. */
export const cellsOf = ({ only, types, processes, queues }: Filters): readonly Cell[] => {
  const hasTypes = oneOf('--types', types, TYPES)
  const hasProcesses = oneOf('--processes', processes, PROCESSES)
  const hasQueues = oneOf('--queues', queues, QUEUES)
  for (const beginning of only)
    if (!CELLS.some(({ name }) => name.startsWith(beginning)))
      throw new Error(`--only: no cell's name begins with '${beginning}': there are ${namesOf(CELLS)}`)
  const cells = CELLS.filter(
    ({ name, kind, shape, processes: count }) =>
      (only.length === 0 || only.some((beginning) => name.startsWith(beginning))) &&
      (kind !== 'drain' || (hasTypes(shape.types) && hasProcesses(count) && hasQueues(shape.queues))),
  )
  if (cells.length === 0) throw new Error('--only, --types, --processes and --queues together leave no cell')
  return cells
}

const oneOf = (option: string, texts: readonly string[], known: readonly number[]): ((value: number) => boolean) => {
  const wanted = texts.flatMap((text) => text.split(',')).map((text) => ({ text, value: Number(text) }))
  for (const { text, value } of wanted)
    if (!known.includes(value)) throw new Error(`${option} must be ${known.join(', ')}, not '${text}'`)
  return (value) => wanted.length === 0 || wanted.some((one) => one.value === value)
}

export const systemsOf = (
  fields: readonly Field[],
  names: readonly string[],
  withPeers: boolean,
): readonly DeployedSystem[] => {
  for (const name of names)
    if (!SYSTEMS.some((system) => system.name === name))
      throw new Error(`--systems: there is no '${name}': there are ${namesOf(SYSTEMS)}`)
  const systems = SYSTEMS.filter(
    ({ name, field, isPeer }) =>
      fields.includes(field) && (withPeers || !isPeer) && (names.length === 0 || names.includes(name)),
  )
  if (systems.length === 0) throw new Error('--systems, --store and --no-peers together leave no system')
  return systems
}

const namesOf = (all: readonly { readonly name: string }[]): string => all.map(({ name }) => `'${name}'`).join(', ')
