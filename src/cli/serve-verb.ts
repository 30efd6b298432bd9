/** The verb that opens the HTTP door. */
import type { Verb } from './verbs.ts'

export const SERVE_VERB: Verb = {
  name: 'serve',
  summary: 'the dashboard, the HTTP API and metrics, until a signal ends it',
  details:
    'On this machine alone, unless --host says otherwise. Every request needs the token: HOLDFAST_TOKEN, or the first line of\n' +
    '--token-file; without either one is made and printed, on loopback only. HOLDFAST_VIEWER_TOKEN lets people look, without\n' +
    'payloads. It speaks plain HTTP: put TLS in front of it before it leaves the machine.',
  options: [
    ['--port <n>', 'where it listens; 0 for any (default: 8484)'],
    ['--host <address>', 'the address to listen on (default: 127.0.0.1)'],
    ['--host-name <name…>', 'a name that it answers to, besides localhost, 127.0.0.1 and [::1]'],
    ['--token-file <file>', 'a file that only its owner can read, with the token'],
    ['--no-token', 'whoever is on this machine may do everything; loopback only'],
    [
      '--proxy-header <name>',
      'instead of a token: a header by which your reverse proxy names the user; only it may reach this',
    ],
    ['--read-only', 'nothing can be changed through it'],
    ['--redact <pattern…>', 'hide the values of these keys in payloads and tags: password, *token*'],
  ],
  examples: [
    'holdfast serve',
    'holdfast serve --read-only --redact "*password*" --redact "*token*"',
    'HOLDFAST_TOKEN=$(cat token) holdfast serve --host 0.0.0.0 --host-name queue.example.com',
  ],
  load: () => import('./commands/serve.ts'),
}
