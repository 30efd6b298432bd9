/** The page on which a new user begins with PostgreSQL, followed on a real server. */
import { test } from 'vitest'
import { followFromTarball } from '../start/packed.ts'
import { freshDatabase, onPostgres } from './setup.ts'

onPostgres('docs/start/postgres.md', (url) => {
  test('is true, followed to the letter in an empty folder from the packed package', { timeout: 300_000 }, async () => {
    const database = await freshDatabase(url)
    await followFromTarball('postgres', [['postgres://postgres:secret@localhost:5432/postgres', database]])
  })
})
