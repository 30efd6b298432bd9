/** A key that passes from one task to the next, with a process that dies at any of its requests. */
import { expect, test } from 'vitest'
import { idOf } from '../../src/testing/conformance/build.ts'
import { openKvInMemory } from './open.ts'
import { Crashed, FaultyKeyValue } from './places/faulty-key-value.ts'
import { KeyValueMap, MemoryKeyValue } from './places/memory-key-value.ts'
import { NOW, withKey } from './scenes.ts'

test('whichever request an insert that replaces a task dies at, the key stands for one of the two and blocks nobody', async () => {
  for (let at = 1, hasFailed = true; hasFailed; at++) {
    const map = new KeyValueMap()
    const kv = (): MemoryKeyValue => new MemoryKeyValue(map, { wall: () => NOW })
    const store = openKvInMemory(kv())
    await store.insert([withKey(1, 'k')], { now: NOW })
    const faulty = new FaultyKeyValue(kv(), 'crash', at)
    const dying = openKvInMemory(faulty)
    await dying.insert([{ ...withKey(2, 'k'), replaces: idOf(1) }], { now: NOW }).catch((error: unknown) => {
      if (!(error instanceof Crashed)) throw error
    })
    await dying.close().catch(() => {})
    hasFailed = faulty.hasFailed
    const held = await store.find('k')
    expect([idOf(1), idOf(2)], `after a crash at request ${at}`).toContain(held?.task?.id)
    const third = { ...withKey(3, 'k'), replaces: held!.task!.id }
    expect(await store.insert([third], { now: NOW })).toEqual([{ outcome: 'created' }])
    expect((await store.find('k'))?.task?.id).toBe(idOf(3))
    await store.close()
  }
})
