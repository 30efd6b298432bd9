/** From one SQLite file to another under load, the mover killed at every named point: nothing runs twice, nothing is lost. */
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { volume } from '../volume.ts'
import { DEATHS, moveCampaign } from './move-campaign.ts'
import { cleanUp, folder } from './processes.ts'
import { report, seededChance } from './seed.ts'

cleanUp(afterAll)

const files = (): { from: string; to: string } => {
  const place = folder()
  return { from: join(place, 'from.db'), to: join(place, 'to.db') }
}

test.concurrent('a move with live workers on both sides, killed at every named point and run again, loses and doubles nothing', async () => {
  const { wrong, killed, stolen, ranOn, slots } = await moveCampaign({ ...files(), deaths: DEATHS })
  report(
    `move: ${killed} kills of the mover, ${stolen} tasks claimed in between, ${ranOn.from} tasks ran in the old file, ${ranOn.to} in the new one, ${slots} slots, ${wrong.length} violations`,
  )
  expect(wrong.slice(0, 5)).toEqual([])
  expect(killed).toBe(DEATHS.length)
  expect(Math.min(stolen, ranOn.from, ranOn.to, slots)).toBeGreaterThan(0)
})

test.concurrent('holdfast move --live, killed at any time and typed again, loses and doubles nothing', async () => {
  const program = { kills: volume(4, 8), chance: seededChance('holdfast move') }
  const { wrong, killed, ranOn } = await moveCampaign({ ...files(), deaths: [], tasks: volume(4_000, 8_000), program })
  report(`holdfast move: killed ${killed} times, ${ranOn.from} tasks ran in the old file, ${ranOn.to} in the new one`)
  expect(wrong.slice(0, 5)).toEqual([])
  expect(killed).toBeGreaterThan(1)
})

test.concurrent('a mover that dies between archiving and copying loses nothing: the next one makes the copies', async () => {
  const { wrong } = await moveCampaign({
    ...files(),
    deaths: [{ side: 'from', call: 'commit', when: 'after' }],
    tasks: 200,
    plant: 'archive-first',
  })
  expect(wrong.slice(0, 5)).toEqual([])
})

test.concurrent('a mover that does not open its copies is noticed', async () => {
  const { wrong } = await moveCampaign({ ...files(), deaths: [], tasks: 600, plant: 'never-open' })
  expect(wrong.some((sentence) => sentence.includes('is archived in the new store'))).toBe(true)
})

// Alone, because it needs a worker that claims between the copy and the archiving; by chance none may.
test('a mover that does not take copies back is noticed', async () => {
  let isNoticed = false
  for (let campaigns = 0; campaigns < 4 && !isNoticed; campaigns++) {
    const { wrong } = await moveCampaign({ ...files(), deaths: [], tasks: 200, plant: 'no-take-back' })
    isNoticed = wrong.some((sentence) => /both sides|in the old store|ended not once/.test(sentence))
  }
  expect(isNoticed).toBe(true)
})
