/** A damaged file is refused or used as it is, but never replaced by a new one, and a refused one is left as it was. */
import {
  closeSync,
  copyFileSync,
  existsSync,
  openSync,
  readFileSync,
  truncateSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { connect, isHoldfastError, silentLogger } from '../../src/index.ts'
import { openSqlite } from '../../src/store/sqlite/store.ts'
import { cleanUp, folder } from './processes.ts'
import { type Chance, report, seededChance } from './seed.ts'

cleanUp()

const TASKS = 300

/** A store with some tasks; `-wal` beside it when it is copied while open. */
const makeStore = async (place: string): Promise<{ closed: string; live: string }> => {
  const closed = join(place, 'closed.db')
  const live = join(place, 'live.db')
  const client = await connect(`sqlite:${closed}`, { logger: silentLogger })
  const items = Array.from({ length: TASKS }, (_, i) => ({
    type: 'work',
    input: 'x'.repeat(500),
    idempotencyKey: `key-${i}`,
  }))
  await client.submitMany(items)
  for (const ending of ['', '-wal']) copyFileSync(closed + ending, live + ending)
  await client.close()
  return { closed, live }
}

const overwrite = (file: string, at: number, bytes: Uint8Array): void => {
  const opened = openSync(file, 'r+')
  writeSync(opened, bytes, 0, bytes.length, at)
  closeSync(opened)
}

const garbage = ({ between }: Chance, length: number): Uint8Array => Uint8Array.from({ length }, () => between(0, 255))
const sizeOf = (file: string): number => readFileSync(file).length
/** As the header says it. */
const pageSize = (file: string): number => readFileSync(file).readUInt16BE(16)
const pageOf = (chance: Chance, file: string): number => {
  const size = pageSize(file)
  return size * chance.between(1, sizeOf(file) / size - 1)
}

/** Each damages a copy of a store that was closed. */
const DAMAGES: Readonly<Record<string, (file: string, chance: Chance) => void>> = {
  'a byte of the header': (file, chance) => overwrite(file, chance.between(0, 99), garbage(chance, 1)),
  'the whole header': (file, chance) => overwrite(file, 0, garbage(chance, 100)),
  'the whole first page': (file, chance) => overwrite(file, 0, garbage(chance, pageSize(file))),
  // How many tables there are: with this at nought the file looks new.
  'the list of tables': (file, chance) => overwrite(file, 103, Uint8Array.of(0, chance.between(0, 4))),
  'a page full of garbage': (file, chance) => overwrite(file, pageOf(chance, file), garbage(chance, pageSize(file))),
  'a page of zeros': (file, chance) => overwrite(file, pageOf(chance, file), new Uint8Array(pageSize(file))),
  'the head of a page': (file, chance) => overwrite(file, pageOf(chance, file), garbage(chance, 12)),
  'a file cut short': (file, chance) => truncateSync(file, chance.between(1, sizeOf(file) - 1)),
  'a text file': (file) => writeFileSync(file, 'dear diary, this is not a database\n'.repeat(100)),
}

interface Attempted {
  readonly code: string | null
  readonly atOpen: boolean
  readonly created: boolean
  readonly tasks: number
}

/** Opens and reads everything. */
const attempt = async (file: string): Promise<Attempted> => {
  let created = false
  let atOpen = true
  let tasks = 0
  try {
    const store = await openSqlite(file, { onCreated: () => (created = true) })
    atOpen = false
    try {
      for (let after: string | undefined; ; ) {
        const page = (
          await store.list({}, { order: 'oldest', limit: 100, now: null, ...(after === undefined ? null : { after }) })
        ).tasks
        for (const task of await store.get(page.map(({ id }) => id))) if (task !== null) tasks++
        after = page.at(-1)?.id
        if (after === undefined) break
      }
      for (let i = 0; i < TASKS; i += 20) await store.find(`key-${i}`)
    } finally {
      await store.close()
    }
    return { code: null, atOpen, created, tasks }
  } catch (error) {
    return { code: isHoldfastError(error) ? error.code : `not a HoldfastError: ${error}`, atOpen, created, tasks }
  }
}

test('a damaged file is never silently replaced, and one that is refused stays as it was, byte for byte', async () => {
  const chance = seededChance('corruption')
  const place = folder()
  const { closed } = await makeStore(place)
  const found: Record<string, Record<string, number>> = {}
  for (const [damage, inflict] of Object.entries(DAMAGES)) {
    const outcomes: Record<string, number> = {}
    found[damage] = outcomes
    for (let i = 0; i < (damage === 'a text file' ? 1 : 8); i++) {
      const file = join(place, 'damaged.db')
      copyFileSync(closed, file)
      inflict(file, chance)
      const before = readFileSync(file)
      const { code, atOpen, created } = await attempt(file)
      const outcome = code === null ? 'readable' : `${code} ${atOpen ? 'at open' : 'on use'}`
      outcomes[outcome] = (outcomes[outcome] ?? 0) + 1
      expect(created, `${damage}: a new store was made of it`).toBe(false)
      if (code !== null) expect(['STORE_CORRUPT', 'STORE_READ_ONLY'], damage).toContain(code)
      if (atOpen && code !== null)
        expect(readFileSync(file).equals(before), `${damage}: the file was changed`).toBe(true)
    }
  }
  report(`corruption: ${JSON.stringify(found)}`)
})

test('a damaged -wal loses at most what was in it, and the store stays the one it was', async () => {
  const chance = seededChance('corrupt -wal')
  const place = folder()
  const { live } = await makeStore(place)
  const wal = readFileSync(`${live}-wal`)
  const outcomes: Record<string, number> = {}
  const intact = join(place, 'intact.db')
  copyFileSync(live, intact)
  writeFileSync(`${intact}-wal`, wal)
  expect(await attempt(intact)).toMatchObject({ code: null, created: false, tasks: TASKS })
  for (let i = 0; i < 20; i++) {
    const file = join(place, `wal-${i}.db`)
    copyFileSync(live, file)
    const kind = chance.pick(['cut short', 'garbage', 'a byte', 'gone'])
    if (kind !== 'gone') writeFileSync(`${file}-wal`, wal)
    if (kind === 'cut short') truncateSync(`${file}-wal`, chance.between(0, wal.length - 1))
    if (kind === 'garbage') writeFileSync(`${file}-wal`, garbage(chance, wal.length))
    if (kind === 'a byte') overwrite(`${file}-wal`, chance.between(0, wal.length - 1), garbage(chance, 1))
    const { code, created, tasks } = await attempt(file)
    expect(created, `${kind}: a new store was made of it`).toBe(false)
    expect([null, 'STORE_CORRUPT']).toContain(code)
    const outcome = code ?? (tasks === TASKS ? 'whole' : 'a part')
    outcomes[`${kind}: ${outcome}`] = (outcomes[`${kind}: ${outcome}`] ?? 0) + 1
  }
  report(`corrupt -wal: ${JSON.stringify(outcomes)}`)
})

test('a store that makes a new file of a damaged one would be noticed', async () => {
  const place = folder()
  const file = join(place, 'gone.db')
  await makeStore(place)
  // What a recreating store would do first: the file is out of the way.
  expect(existsSync(file)).toBe(false)
  expect((await attempt(file)).created).toBe(true)
})
