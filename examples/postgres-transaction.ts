/** Your rows and the task commit together, or not at all. Run it: node examples/postgres-transaction.ts postgres://… */
import { connect } from 'holdfast'
import { Pool } from 'pg'

const url = process.argv[2] ?? 'postgres://postgres@localhost:5432/postgres'
const pool = new Pool({ connectionString: url })
const holdfast = await connect(url, { create: true })
await pool.query('create table if not exists orders (id serial primary key, total integer)')

const placeOrder = async (total: number): Promise<void> => {
  const db = await pool.connect()
  try {
    await db.query('begin')
    const { rows } = await db.query('insert into orders (total) values ($1) returning id', [total])
    await holdfast.submit('send_receipt', { order: rows[0].id }, { tx: db })
    if (total < 0) throw new Error('a negative order')
    await db.query('commit') // workers wake up now, wherever they are
  } catch (error) {
    await db.query('rollback')
    throw error
  } finally {
    db.release()
  }
}

await placeOrder(42)
await placeOrder(-1).catch((error: Error) => console.log(`refused: ${error.message}`))

const { count } = await holdfast.count({ type: 'send_receipt' })
const { rows } = await pool.query('select count(*)::int as orders from orders')
console.log(`${rows[0].orders} orders, ${count} receipts to send`)
await holdfast.close()
await pool.end()
