/** Examples for the OpenAPI document, by operation. A test checks them against the schemas. */

const TOKEN = 'k3fIs3pAa3pq4xZr0VhX9w'
const query = { type: 'charge_card', group: '5d1f0c7a9b2e' }
const confirm = 'm3q0x1z2.Yy7mXw9bT1k'

/** The body of a request, and what it answers. */
export interface Example {
  readonly body?: object
  readonly answer?: object
}

export const EXAMPLES: Readonly<Record<string, Example>> = {
  submitTask: {
    body: {
      type: 'send_reminder',
      input: { user: 4711 },
      queue: 'mail',
      delay: '30m',
      idempotencyKey: 'reminder-4711',
      tags: { customer: 'acme' },
    },
  },
  submitTasks: {
    body: {
      tasks: [
        { type: 'send_reminder', input: { user: 1 } },
        { type: 'send_reminder', input: { user: 2 } },
      ],
    },
  },
  bulkPreview: { body: { action: 'cancel', query: { queue: 'mail', status: 'pending' } } },
  bulk: { body: { action: 'cancel', query: { queue: 'mail', status: 'pending' }, confirm } },
  countTasks: { answer: { count: 1423, capped: false } },
  cancelTask: { body: { reason: 'the order was withdrawn' } },
  replayTask: { body: { asNew: true } },
  amendTask: { body: { priority: 10, delay: '1h' } },
  signalTask: { body: { name: 'approved', value: { by: 'ann' } } },
  claim: { body: { workerId: 'py-1-20f3', queues: ['mail'], types: ['send_reminder'], limit: 4, wait: '20s' } },
  claimTask: { body: { workerId: 'py-1-20f3' } },
  heartbeatTask: { body: { token: TOKEN, progress: { percent: 40 } }, answer: { cancelRequested: false } },
  completeTask: { body: { token: TOKEN, output: { sent: true } } },
  failTask: { body: { token: TOKEN, error: { name: 'SMTPError', message: '451 mailbox busy' }, delay: '1m' } },
  rescheduleTask: { body: { token: TOKEN, delay: '15m' } },
  releaseTask: { body: { token: TOKEN } },
  readSteps: { body: { token: TOKEN } },
  step: { body: { token: TOKEN, name: 'charge', value: { receipt: 'r-17' } } },
  sleepTask: { body: { token: TOKEN, name: 'cool-down', duration: '1h' } },
  waitForSignal: { body: { token: TOKEN, name: 'approval', signal: 'approved', timeout: '7d' } },
  replayPreview: { body: { query } },
  replayDeadLetters: { body: { query, confirm, canary: 1, rate: 20 } },
  purgePreview: { body: { query } },
  purgeDeadLetters: { body: { query, confirm } },
  createSchedule: {
    body: {
      id: 'nightly-report',
      type: 'report',
      input: { period: 'day' },
      cron: '0 3 * * *',
      timezone: 'Europe/Berlin',
      overlap: 'skip',
    },
  },
  updateSchedule: { body: { cron: '30 3 * * *', options: { queue: 'reports' } } },
  nextOfSchedule: { answer: { slots: ['2026-03-01T02:00:00.000Z', '2026-03-02T02:00:00.000Z'] } },
  pauseQueue: {
    body: { reason: 'the mail provider is down' },
    answer: { queue: 'mail', paused: true },
  },
  resumeQueue: { body: {}, answer: { queue: 'mail', paused: false } },
  limitQueue: { body: { concurrency: 20, perGroup: 2, fair: true, rate: '60/1m' } },
  info: {
    answer: {
      address: 'postgres://db/app?schema=jobs',
      now: '2026-03-01T09:30:00.000Z',
      readOnly: false,
      rights: ['read', 'payloads', 'submit', 'signal', 'operate'],
      name: 'ann',
      session: true,
    },
  },
}
