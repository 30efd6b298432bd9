/** `holdfast export`: writes everything as lines of JSON, to standard output or to a file that is complete or absent. */
import { once } from 'node:events'
import { createWriteStream } from 'node:fs'
import { rename, rm } from 'node:fs/promises'
import { finished } from 'node:stream/promises'
import { HoldfastError, parseView, type TaskQuery, VIEWS } from '../../index.ts'
import { messageOf } from '../output/errors.ts'
import { EXIT } from '../output/exit-codes.ts'
import { err, out, outJson } from '../output/render.ts'
import { withClient } from '../program/session.ts'
import { type BulkOptions, filterOf, progressBar, tasks } from './shared/bulk.ts'

interface Options extends BulkOptions {
  readonly output?: string
  readonly status?: readonly string[]
}

const EVERY_STATUS = VIEWS.filter((view) => !['scheduled', 'ready', 'retrying', 'parked', 'dead'].includes(view))

export const run = async (_: readonly string[], options: Options): Promise<number> => {
  const status = options.status?.flatMap((names) => names.split(',')).map((name) => parseView(name.trim()))
  const query: TaskQuery = { ...filterOf(options), ...(status === undefined ? null : { status }) }
  return withClient(options, { create: false }, async (client) => {
    const { output, json = false } = options
    const { count } = await client.count({ status: EVERY_STATUS, ...query }, { cap: 1_000_000_000 })
    // If the lines go to a terminal, a progress bar would appear in the middle of them.
    const bar = output !== undefined || !process.stdout.isTTY ? progressBar(count) : progressBar(0)
    const counted = { done: 0, end: {} as Record<string, number> }
    const lines = seen(client.export(query), (line) => {
      if (line.startsWith('{"task"') && ++counted.done % 500 === 0) bar.at(counted.done)
      if (line.startsWith('{"end"')) counted.end = JSON.parse(line).end
    })
    try {
      if (output === undefined) await writeTo(process.stdout, lines)
      else await writeFile(output, lines)
    } finally {
      bar.end()
    }
    if (output === undefined) return EXIT.ok
    if (json) outJson({ output, ...counted.end })
    else if (process.stderr.isTTY) err(`exported ${tasks(counted.done)} to ${output}`)
    else out(`exported ${tasks(counted.done)} to ${output}`)
    return EXIT.ok
  })
}

async function* seen(lines: AsyncIterable<string>, see: (line: string) => void): AsyncGenerator<string> {
  for await (const line of lines) {
    see(line)
    yield line
  }
}

const writeTo = async (stream: NodeJS.WritableStream, lines: AsyncIterable<string>): Promise<void> => {
  for await (const line of lines) if (!stream.write(`${line}\n`)) await once(stream, 'drain')
}

/** Writes to a temporary name until the file is complete, so an existing file stays until then. */
const writeFile = async (path: string, lines: AsyncIterable<string>): Promise<void> => {
  const part = `${path}.part`
  const stream = createWriteStream(part)
  try {
    await once(stream, 'open')
    await writeTo(stream, lines)
    stream.end()
    await finished(stream)
    await rename(part, path)
  } catch (error) {
    stream.destroy()
    await rm(part, { force: true })
    if (error instanceof HoldfastError) throw error
    const why = messageOf(error)
    throw new HoldfastError('INVALID_OPTION', `--output: cannot write '${path}': ${why}`, { field: '--output' }, error)
  }
}
