/** Bugs in the HTTP handler and in the metrics. */
import type { Mutant } from './mutant.ts'

export const HTTP: readonly Mutant[] = [
  {
    file: 'http/auth/tokens.ts',
    find: 'ambient: true, session }',
    replace: 'session }',
    breaks: 'another site can act with the cookie of a visitor',
    tests: ['http/security.test.ts'],
  },
  {
    file: 'http/confirmations.ts',
    find: '.update(JSON.stringify([action, which, until]))',
    replace: '.update(JSON.stringify([action, until]))',
    breaks: 'a confirmation of one selection holds for another',
    tests: ['http/security.test.ts', 'http/document.test.ts'],
  },
  {
    file: 'http/confirmations.ts',
    find: 'if (!isRight || Number.parseInt(until, 36) < this.#now())',
    replace: 'if (!isRight)',
    breaks: 'a confirmation never expires',
    tests: ['http/confirmations.test.ts'],
  },
  {
    file: 'http/routes/leases.ts',
    find: 'Math.max(1, Math.floor(ttl / 3))',
    replace: 'ttl',
    breaks: 'workers over HTTP renew when their lease has lapsed',
    tests: ['http/workers.test.ts'],
  },
  {
    file: 'http/routes/leases.ts',
    find: '      if (held.workerId !== null) void call.client.heardOfWorker(held.workerId, { leaseTtl })\n',
    replace: '',
    breaks: 'a worker over HTTP vanishes during a long run',
    tests: ['http/workers.test.ts'],
  },
  {
    file: 'http/routes/leases.ts',
    find: 'permanent ? new PermanentError(message) : retried()',
    replace: 'retried()',
    breaks: 'a permanent failure over HTTP is retried',
    tests: ['http/workers.test.ts'],
  },
  {
    file: 'http/claims.ts',
    find: 'this.#looks++ % queues.length',
    replace: '0',
    breaks: 'over HTTP a full queue starves the others',
    tests: ['http/workers.test.ts'],
  },
  {
    file: 'http/claims.ts',
    find: '        await Promise.all(leases.map((lease) => lease.release()))\n',
    replace: '',
    breaks: 'what was claimed for a caller that is gone waits for its lease to lapse',
    tests: ['http/workers.test.ts'],
  },
  {
    file: 'http/wire/redaction.ts',
    find: 'const name = key.toLowerCase()',
    replace: 'const name = key',
    breaks: 'a secret with a capital letter is shown',
    tests: ['http/security.test.ts'],
  },
  {
    file: 'metrics/metrics.ts',
    find: "if (isHoldfastError(error, 'TASK_NOT_FOUND')) expirations.forget(id)",
    replace: 'void error',
    breaks: 'tasks that were removed stay near their expiry for ever',
    tests: ['http/metrics.test.ts'],
  },
]
