/** Your rows and the task commit together, or not at all. Run it: node examples/transaction.ts */
import { DatabaseSync } from 'node:sqlite'
import { connect } from 'holdfast'

const file = process.argv[2] ?? './shop.db'
await using holdfast = await connect(`sqlite:${file}`)
// Without a timeout, your own handle fails at once with `database is locked` while Holdfast writes.
using db = new DatabaseSync(file, { timeout: 5_000 })
db.exec('create table if not exists orders (id integer primary key, total integer)')

const placeOrder = (total: number): Promise<unknown> => {
  db.exec('begin immediate')
  try {
    const { lastInsertRowid } = db.prepare('insert into orders (total) values (?)').run(total)
    const submitted = holdfast.submit('send_receipt', { order: Number(lastInsertRowid) }, { tx: db })
    if (total < 0) throw new Error('a negative order')
    db.exec('commit')
    return submitted
  } catch (error) {
    db.exec('rollback')
    return Promise.reject(error)
  }
}

await placeOrder(42)
await placeOrder(-1).catch((error: Error) => console.log(`refused: ${error.message}`))

const { count } = await holdfast.count({ type: 'send_receipt' })
const { orders } = db.prepare('select count(*) as orders from orders').get() as { orders: number }
console.log(`${orders} orders, ${count} receipts to send`)
