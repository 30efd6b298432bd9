/** A web server that saves an order and submits its receipt in one transaction, and a worker that sends it. Run it: node examples/web-server.ts */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { DatabaseSync } from 'node:sqlite'
import { text } from 'node:stream/consumers'
import { connect, defineTask } from 'holdfast'

const sendReceipt = defineTask<{ order: number }, { mailed: string }>('send_receipt')

// The tasks are in the database of the shop, so its transactions are those of the queue: no outbox table, and nothing that reads one.
const file = process.argv[2] ?? './shop.db'
const holdfast = await connect(`sqlite:${file}`)
const db = new DatabaseSync(file, { timeout: 5_000 })
db.exec('create table if not exists orders (id integer primary key, mail text not null)')

const placeOrder = async (mail: string): Promise<{ order: number; task: string }> => {
  db.exec('begin immediate')
  try {
    const order = Number(db.prepare('insert into orders (mail) values (?)').run(mail).lastInsertRowid)
    const submitted = holdfast.submit(sendReceipt, { order }, { tx: db })
    if (!mail.includes('@')) throw new Error('that is no address')
    db.exec('commit')
    return { order, task: (await submitted).id }
  } catch (error) {
    db.exec('rollback')
    throw error
  }
}

const answer = async (request: Request): Promise<Response> => {
  const { pathname } = new URL(request.url)
  if (request.method === 'POST' && pathname === '/orders') {
    const { mail } = (await request.json()) as { mail: string }
    return placeOrder(mail).then(
      (placed) => Response.json(placed, { status: 202 }),
      ({ message }: Error) => Response.json({ error: message }, { status: 422 }),
    )
  }
  const [, task] = /^\/receipts\/([\w-]+)$/.exec(pathname) ?? []
  if (task === undefined) return Response.json({ error: 'not found' }, { status: 404 })
  const { status, output } = await holdfast.get(sendReceipt, task)
  return Response.json({ status, output })
}

const server = createServer(async (request, response) => {
  const url = `http://${request.headers.host}${request.url}`
  const init = request.method === 'POST' ? { method: 'POST', body: await text(request) } : {}
  const answered = await answer(new Request(url, init)).catch(() => new Response(null, { status: 500 }))
  response.writeHead(answered.status, { 'content-type': 'application/json' }).end(await answered.text())
}).listen(0, '127.0.0.1')
await new Promise((done) => server.once('listening', done))

const worker = holdfast.worker().handle(sendReceipt, ({ order }) => {
  const { mail } = db.prepare('select mail from orders where id = ?').get(order) as { mail: string }
  return { mailed: mail }
})
worker.start()

// What a browser does.
const address = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
const post = (mail: string): Promise<Response> =>
  fetch(`${address}/orders`, { method: 'POST', body: JSON.stringify({ mail }) })
const { task } = (await (await post('ann@example.com')).json()) as { task: string }
await holdfast.wait(sendReceipt, task)
console.log(await (await fetch(`${address}/receipts/${task}`)).json())
const refused = await post('nowhere')
console.log(refused.status, await refused.json())
const { orders } = db.prepare('select count(*) orders from orders').get() as { orders: number }
const { count } = await holdfast.count({ type: 'send_receipt' })
console.log(`${orders} order, ${count} receipt`)

// In this order when a server stops: no more requests, then the tasks, then the store.
server.close()
await worker.stop()
await holdfast.close()
db.close()
