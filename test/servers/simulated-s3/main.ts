/** The simulated S3 as a process: `node main.ts [options as JSON] [port]`. Prints where it listens. */
import type { SimulatedS3Options } from './options.ts'
import { serve } from './serve.ts'

const [options = '{}', port = '0'] = process.argv.slice(2)
serve(JSON.parse(options) as SimulatedS3Options, Number(port), (listening) =>
  console.log(`listening on http://127.0.0.1:${listening}`),
)
