/** [M02] Five schedulers on one file, killed in the middle of slots again and again: exactly one task a slot. */
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { type Client, connect, silentLogger } from '../../src/index.ts'
import { volume } from '../volume.ts'
import type { Plant } from './planted.ts'
import { type Child, cleanUp, folder, start, until } from './processes.ts'
import { chance, report, seededChance } from './seed.ts'

cleanUp()

const EVERY = 25
const SLOTS = volume(400, 1_000)
const KILLS = volume(20, 50)

interface Campaign {
  readonly slots: number
  readonly kills: number
  readonly seed: number
  /** Of a hundred submits, so many are a scheduler's last. */
  readonly deaths: number
  readonly dies?: 'before' | 'after'
  readonly plant?: Plant
}

const campaign = async ({ slots, kills, seed, deaths, dies, plant = 'none' }: Campaign) => {
  const file = join(folder(), 'schedules.db')
  const { between } = chance(seed)
  const client = await connect(`sqlite:${file}`, { logger: silentLogger })
  const begin = (mortality: number): Child =>
    start('scheduler', { file, seed: between(0, 1e9), deaths: mortality, plant, ...(dies && { dies }) })
  const deathsOf = (where: string): number =>
    everybody.flatMap((child) => child.said('dies')).filter((line) => line['where'] === where).length
  const everybody = Array.from({ length: 5 }, () => begin(deaths))
  await Promise.all(everybody.map((child) => child.heard('ready')))
  const { createdAt } = await client.schedules.create({
    id: 'tick',
    type: 'work',
    input: null,
    every: `${EVERY}ms`,
    overlap: 'allow',
    catchUp: 'all',
  })

  let living = [...everybody]
  const wanted = dies ?? 'after'
  await until(
    'enough slots have come and enough schedulers have died',
    async () => {
      living = living.map((child) => {
        if (child.isAlive) return child
        const next = begin(deaths)
        everybody.push(next)
        return next
      })
      const { cursor } = await client.schedules.get('tick')
      return deathsOf(wanted) >= kills && cursor >= createdAt + slots * EVERY
    },
    240_000,
  )
  // Somebody who lives settles what the dead left half-way.
  const survivor = begin(0)
  await survivor.heard('ready')
  for (const child of living) child.signal('SIGTERM')
  await Promise.all(living.map((child) => child.ended))
  const { cursor: before } = await client.schedules.get('tick')
  await until('the schedule goes on', async () => (await client.schedules.get('tick')).cursor > before + 1_000, 60_000)
  survivor.signal('SIGTERM')
  await survivor.end()
  const { cursor } = await client.schedules.get('tick')
  const made = await madeSlots(client, cursor)
  await client.close()
  const expected = Array.from({ length: (cursor - createdAt) / EVERY }, (_, k) => createdAt + (k + 1) * EVERY)
  return { made, expected, after: deathsOf('after'), before: deathsOf('before') }
}

/** Up to the cursor, by the instants in the keys. */
const madeSlots = async (client: Client, cursor: number): Promise<number[]> => {
  const made: number[] = []
  let next: string | null = null
  do {
    const page: Awaited<ReturnType<Client['list']>> = await client.list({
      limit: 1_000,
      ...(next === null ? null : { cursor: next }),
    })
    for (const { idempotencyKey } of page.tasks) made.push(Date.parse(idempotencyKey!.slice(-24)))
    next = page.cursor
  } while (next !== null)
  return made.filter((slot) => slot <= cursor).sort((a, b) => a - b)
}

test(`${SLOTS} slots and ${KILLS} schedulers killed between submit and cursor: one task a slot`, async () => {
  const { seed } = seededChance('schedulers')
  const { made, expected, after, before } = await campaign({ slots: SLOTS, kills: KILLS, deaths: 15, seed })
  report(`schedulers: ${expected.length} slots, ${after} killed after the submit, ${before} before it`)
  expect(after).toBeGreaterThanOrEqual(KILLS)
  expect(expected.length).toBeGreaterThanOrEqual(SLOTS)
  expect(made).toEqual(expected)
})

test('a cursor that moves before the submit is noticed', async () => {
  const { made, expected, before } = await campaign({
    slots: 40,
    kills: 3,
    deaths: 25,
    dies: 'before',
    plant: 'cursor-first',
    seed: 7,
  })
  expect(before).toBeGreaterThanOrEqual(3)
  expect(made.length).toBeLessThan(expected.length)
})
