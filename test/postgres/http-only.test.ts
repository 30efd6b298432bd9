/** Workers over HTTP alone, on PostgreSQL. */
import { spawnSync } from 'node:child_process'
import { onTestFinished, test } from 'vitest'
import { makeFolder } from '../cli/shell.ts'
import { httpWorkersAlone } from '../http/http-only.ts'
import { freshSchema, runSql } from '../servers/schemas.ts'
import { onPostgres } from './setup.ts'

const hasPython = spawnSync('python3', ['--version']).status === 0

onPostgres('workers over HTTP alone', (url) => {
  test.skipIf(!hasPython)(
    `three workers in Python and a server are enough: schedules, ttl, retention, leases of the dead${hasPython ? '' : ' (skipped: no python3)'}`,
    { timeout: 180_000 },
    async () => {
      const schema = freshSchema()
      onTestFinished(async () => void (await runSql(url, `drop schema if exists ${schema} cascade`)))
      const folder = makeFolder()
      const env = { HOLDFAST_URL: `${url}?schema=${schema}` }
      await folder.run(['init'], { env })
      await httpWorkersAlone(folder, env)
    },
  )
})
