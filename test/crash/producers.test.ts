/** kill -9 of a producer in the middle of a submit: what it was told is there, and asking again makes nothing twice. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { openSqlite } from '../../src/store/sqlite/store.ts'
import { volume } from '../volume.ts'
import type { ProducerPlan } from './children/producer.ts'
import type { Plant } from './planted.ts'
import { type Child, cleanUp, folder, pause, start } from './processes.ts'
import { chance, report, seededChance } from './seed.ts'
import { readWitness, readWitnesses, type WitnessLine } from './witness.ts'

cleanUp()

interface Campaign {
  readonly kills: number
  readonly batch: number
  readonly seed: number
  readonly plant?: Plant
}

const keysOf = (lines: readonly WitnessLine[], what: string): string[] =>
  lines.filter((line) => line.what === what).flatMap((line) => line['keys'] as string[])

const campaign = async ({ kills, batch, seed, plant = 'none' }: Campaign) => {
  const place = folder()
  const file = join(place, 'produce.db')
  const { between } = chance(seed)
  let hits = 0
  let tries = 0
  const produce = (keys: readonly string[], at: number): Child => {
    const list = join(place, `${tries}.keys`)
    writeFileSync(list, JSON.stringify(keys))
    const plan: ProducerPlan = { file, folder: place, keys: list, batch: at, plant }
    return start('producer', plan)
  }
  const kill = async (): Promise<void> => {
    const name = `${batch}-${++tries}`
    // More than can be submitted before the kill.
    const child = produce(
      Array.from({ length: 10_000 }, (_, i) => `${name}-${i}`),
      batch,
    )
    await child.heard('ready')
    await pause(between(0, 60))
    const { signal } = await child.kill()
    const lines = readWitness(place, child.pid)
    // Asked and not yet told: the kill came in between.
    if (signal === 'SIGKILL' && keysOf(lines, 'ask').length > keysOf(lines, 'told').length) hits++
  }
  while (hits < kills) await Promise.all([kill(), kill(), kill()])
  tries++

  const lines = readWitnesses(place)
  const asked = keysOf(lines, 'ask')
  const told = keysOf(lines, 'told')
  const before = await countByKey(file)
  await produce(asked, 100).heard('done')
  const after = await countByKey(file)

  const wrong: string[] = []
  for (const key of told)
    if (before.get(key) !== 1) wrong.push(`${key} was acknowledged, and is there ${before.get(key) ?? 0} times`)
  for (const [key, times] of before) if (times > 1) wrong.push(`${key} is there ${times} times`)
  for (const key of asked)
    if (after.get(key) !== 1) wrong.push(`${key} was asked for again, and is there ${after.get(key) ?? 0} times`)
  const wanted = new Set(asked)
  for (const key of after.keys()) if (!wanted.has(key)) wrong.push(`${key} is there, but nobody asked for it`)
  const acknowledged = new Set(told)
  const unclear = asked.filter((key) => !acknowledged.has(key))
  return {
    hits,
    asked: asked.length,
    told: told.length,
    unclear: unclear.length,
    written: unclear.filter((key) => before.has(key)).length,
    wrong,
  }
}

const countByKey = async (file: string): Promise<Map<string, number>> => {
  const store = await openSqlite(file, { create: false })
  const counts = new Map<string, number>()
  try {
    for (let after: string | undefined; ; ) {
      const page = (
        await store.list({}, { order: 'oldest', limit: 1_000, now: null, ...(after === undefined ? null : { after }) })
      ).tasks
      for (const { idempotencyKey } of page) counts.set(idempotencyKey!, (counts.get(idempotencyKey!) ?? 0) + 1)
      after = page.at(-1)?.id
      if (after === undefined) return counts
    }
  } finally {
    await store.close()
  }
}

for (const [batch, kills] of [
  [1, volume(15, 40)],
  [100, volume(15, 40)],
] as const) {
  test(`[D11] ${kills} producers killed while submitting ${batch} at a time: nothing acknowledged is lost, nothing is there twice`, async () => {
    const { seed } = seededChance(`producers of ${batch}`)
    const { hits, asked, told, unclear, written, wrong } = await campaign({ kills, batch, seed })
    report(
      `producers of ${batch}: ${hits} kills in mid-submit, ${asked} asked, ${told} acknowledged, ${unclear} unclear of which ${written} were written`,
    )
    expect(wrong.slice(0, 5)).toEqual([])
    expect(told).toBeGreaterThan(0)
    expect(hits).toBeGreaterThanOrEqual(kills)
  })
}

test('a store that forgets keys is noticed', async () => {
  const { wrong } = await campaign({ kills: 1, batch: 1, seed: 4, plant: 'forget-keys' })
  expect(wrong.some((sentence) => sentence.includes('asked for again, and is there 2 times'))).toBe(true)
})

test('a store that acknowledges before it writes is noticed', async () => {
  const { wrong } = await campaign({ kills: 12, batch: 100, seed: 5, plant: 'early-ack' })
  expect(wrong.some((sentence) => sentence.includes('acknowledged, and is there 0 times'))).toBe(true)
})
