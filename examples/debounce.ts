/** Many edits, one run that indexes the document: a debounce in the store. Run it: node examples/debounce.ts */
import { connect, defineTask } from 'holdfast'
import { z } from 'zod'

const indexDocument = defineTask('index_document', {
  input: z.object({ id: z.number(), text: z.string() }),
  output: z.object({ indexed: z.string() }),
})

await using holdfast = await connect(process.argv[2] ?? 'memory:')

/** Runs 50 ms after the last edit, and a second after the first at the latest. */
const edited = (text: string) =>
  holdfast.submit(indexDocument, { id: 7, text }, { coalesce: { key: 'doc-7', delay: '50ms', maxWait: '1s' } })

// Ten edits before the first run are one task, with the input of the last.
let task = await edited('draft 1')
for (let n = 2; n <= 10; n++) task = await edited(`draft ${n}`)

// An edit while the task runs makes a second task: the last edit is always followed by a run that began after it.
const edit = Promise.withResolvers<Awaited<ReturnType<typeof edited>>>()
let runs = 0
const worker = holdfast.worker().handle(indexDocument, async ({ text }) => {
  if (++runs === 1) edit.resolve(await edited('final'))
  return { indexed: text }
})
worker.start()

console.log('first run:', await holdfast.wait(task))
const second = await edit.promise
console.log('an edit meanwhile is', second.id === task.id ? 'the same task' : 'another task')
console.log('second run:', await holdfast.wait(second))
console.log(`${runs} runs for 11 edits`)
