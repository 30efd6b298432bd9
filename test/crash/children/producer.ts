/** Submits tasks under keys of its own, and tells the witness before it asks and after it was told yes. */
import { readFileSync } from 'node:fs'
import type { Plant } from '../planted.ts'
import { openWitness } from '../witness.ts'
import { open, planOf, say } from './child.ts'

export interface ProducerPlan {
  readonly file: string
  readonly folder: string
  /** A file with a JSON array of them. */
  readonly keys: string
  /** Keys in one call. */
  readonly batch: number
  readonly plant?: Plant
}

const { file, folder, batch, keys: list, plant = 'none' } = planOf<ProducerPlan>()
const keys = JSON.parse(readFileSync(list, 'utf8')) as string[]
const witness = openWitness(folder)
const client = await open(file, plant)
const item = (key: string) => ({ type: 'work', input: { key }, idempotencyKey: key })
const submit = async (key: string) => ({
  ok: true,
  task: await client.submit('work', { key }, { idempotencyKey: key }),
})

say('ready')
for (let i = 0; i < keys.length; i += batch) {
  const turn = keys.slice(i, i + batch)
  witness('ask', { keys: turn })
  const results = batch === 1 ? [await submit(turn[0]!)] : await client.submitMany(turn.map(item))
  if (results.some(({ ok }) => !ok)) throw new Error(JSON.stringify(results.find(({ ok }) => !ok)))
  witness('told', { keys: turn })
}
await client.close()
say('done')
