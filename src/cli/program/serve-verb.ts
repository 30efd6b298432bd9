/** The verb that starts the HTTP server. */
import type { Verb } from './verbs.ts'

export const SERVE_VERB: Verb = {
  name: 'serve',
  summary: 'serve the dashboard, the HTTP API and metrics until a signal stops it',
  details:
    'It listens on this machine only, unless --host says otherwise. Every request needs the token: HOLDFAST_TOKEN, or the first line of\n' +
    '--token-file. Without either, a token is generated and printed, on loopback only. HOLDFAST_VIEWER_TOKEN allows reading without\n' +
    'payloads. It speaks plain HTTP: put TLS in front of it before you expose it beyond this machine.',
  options: [
    ['--port <n>', 'the port to listen on; 0 for any free port (default: 8484)'],
    ['--host <address>', 'the address to listen on (default: 127.0.0.1)'],
    ['--host-name <name…>', 'a host name to accept, besides localhost, 127.0.0.1 and [::1]'],
    ['--token-file <file>', 'a file with the token, readable only by its owner'],
    [
      '--tokens <file>',
      'a JSON file with named tokens, each with a role (viewer, operator, worker), readable only by its owner',
    ],
    ['--no-token', 'every user of this machine may do everything; loopback only'],
    [
      '--proxy-header <name>',
      'instead of a token: the header in which your reverse proxy names the user; only the proxy may reach this server',
    ],
    ['--trust-proxy', 'a proxy before this server sets X-Forwarded-Proto: over https, cookies are Secure'],
    [
      '--per-address <n>',
      'maximum connections from one address; 0 for no limit (default: 200, and no limit with --proxy-header or --trust-proxy)',
    ],
    ['--read-only', 'refuse every change'],
    ['--redact <pattern…>', 'hide the values of these keys in payloads and tags: password, *token*'],
  ],
  examples: [
    'holdfast serve',
    'holdfast serve --read-only --redact "*password*" --redact "*token*"',
    'HOLDFAST_TOKEN=$(cat token) holdfast serve --host 0.0.0.0 --host-name queue.example.com',
  ],
  load: () => import('../commands/serve.ts'),
}
