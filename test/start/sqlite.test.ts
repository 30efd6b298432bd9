/** The first page that a new user follows, followed. */
import { test } from 'vitest'
import { followFromTarball } from './packed.ts'

test(
  'docs/start/sqlite.md is true, followed to the letter in an empty folder from the packed package',
  { timeout: 300_000 },
  () => followFromTarball('sqlite'),
)
