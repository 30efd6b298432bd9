/** `holdfast demo`: creates a store, runs the demo, prints a summary. Exit code 0 only if every task is accounted for. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { connect, silentLogger } from '../../index.ts'
import { account } from '../demo/account.ts'
import { hasEnded, introduction, scene, seconds } from '../demo/scene.ts'
import { openScreen, type Screen, textOf } from '../demo/screen.ts'
import { type Audience, type Ending, show } from '../demo/show.ts'
import { summaryText } from '../demo/summary.ts'
import { EXIT } from '../output/exit-codes.ts'
import { err, out, outJson, paint } from '../output/render.ts'
import { type GlobalOptions, refuseMemory } from '../program/session.ts'

interface Options extends GlobalOptions {
  readonly keep?: boolean
}

export const run = async (_: readonly string[], options: Options): Promise<number> => {
  if (options.url !== undefined) {
    refuseMemory(options.url)
    return perform(options.url, options)
  }
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-demo-'))
  // On exit, so that it is removed however the demo ends, including a closed pipe.
  if (!options.keep) process.once('exit', () => rmSync(folder, { recursive: true, force: true }))
  return perform(`sqlite:${join(folder, 'demo.db')}`, options)
}

const perform = async (url: string, options: Options): Promise<number> => {
  const interrupt = new AbortController()
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(signal, () => interrupt.abort())
  const client = await connect(url, { create: true, name: 'demo', logger: silentLogger })
  try {
    // A separate queue, so that the sums hold in a store that others use too.
    const queue = `demo-${(await client.now()).toString(36)}`
    const { audience, close } = options.json ? silence() : process.stdout.isTTY ? terminal() : log()
    const ending = await show(client, url, queue, audience, interrupt.signal).finally(close)
    if (interrupt.signal.aborted) return EXIT.interrupted
    // The part before an @ may be a secret.
    const address = /^s3:/i.test(url) && !url.includes('@') ? url : client.address
    return conclude(ending, queue, address, options)
  } finally {
    await client.close()
  }
}

const conclude = (ending: Ending, queue: string, address: string, options: Options): number => {
  const sums = account(ending.submitted, ending.tasks, ending.killed)
  const { killed, killedAt, elapsed, complaints } = ending
  const isKept = options.keep === true || options.url !== undefined
  if (options.json) outJson({ ...sums, killed, killedAt, elapsed, queue, address: isKept ? address : null })
  else {
    out(`\n${summaryText(sums, ending)}`)
    if (isKept) out(paint('dim', `\nThe store is kept: holdfast list --url '${address}' --queue ${queue}`))
  }
  if (sums.isComplete) return EXIT.ok
  if (complaints !== '') err(complaints)
  return EXIT.internal
}

interface Seat {
  readonly audience: Audience
  readonly close: () => void
}

const silence = (): Seat => ({ audience: { see: () => {}, hear: () => {} }, close: () => {} })

/** Redrawn in place; the summary follows the last picture. */
const terminal = (): Seat => {
  let screen: Screen | null = null
  return {
    audience: {
      see: (moment) => {
        screen ??= openScreen(process.stdout)
        screen.draw(scene(moment))
      },
      hear: () => {},
    },
    close: () => screen?.close({ keepPicture: true }),
  }
}

/** For a pipe: the main events, and the progress once a second. */
const log = (): Seat => {
  let printedAt = Number.NEGATIVE_INFINITY
  for (const line of introduction()) out(textOf(line))
  return {
    audience: {
      see: ({ elapsed, tasks }) => {
        if (elapsed - printedAt < 1_000) return
        printedAt = elapsed
        out(` ${seconds(elapsed).padStart(6)}  ${tasks.filter(hasEnded).length} of ${tasks.length} tasks ended`)
      },
      hear: (line, isMain) => {
        if (isMain) out(textOf(line))
      },
    },
    close: () => {},
  }
}
