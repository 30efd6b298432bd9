/** Runs the command of an argv and sets the exit code. Loads only what the verb needs, to start fast. */
import { CommanderError } from 'commander'
import { makeProgram } from './program/program.ts'

const main = async (argv: readonly string[]): Promise<void> => {
  // The default until a verb sets it: a process that ends too early must not look like a success.
  process.exitCode = 1
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    // `holdfast list | head` is not an error.
    if (error.code === 'EPIPE') process.exit(0)
    process.stderr.write(`error: standard output cannot be written: ${error.message}\n`, () => process.exit(1))
  })
  const program = makeProgram((code) => (process.exitCode = code))
  try {
    // A shell asks for completions: see program/completion.ts.
    if (argv[2] === 'complete' && argv[3] === '--') {
      const { complete } = await import('./program/completion.ts')
      complete(argv.slice(4))
      process.exitCode = 0
      return
    }
    await program.parseAsync(argv.length > 2 ? argv : [...argv, '--help'])
  } catch (thrown) {
    if (thrown instanceof CommanderError && thrown.exitCode === 0) {
      process.exitCode = 0
      return
    }
    const { report } = await import('./output/errors.ts')
    const error = thrown instanceof CommanderError ? await usageError(thrown) : thrown
    process.exitCode = report(error, argv.includes('--json') || program.opts()['json'] === true)
  }
}

/** A parse error as a HoldfastError, with the exit code of any other bad input. */
const usageError = async ({ code, message }: CommanderError): Promise<Error> => {
  const { HoldfastError } = await import('../index.ts')
  const text = code === 'commander.help' ? 'name a verb' : message.replace(/^error: /, '').replaceAll('\n', ' ')
  return new HoldfastError('INVALID_OPTION', text)
}

/** With nothing left to wait for, Node ends the process without a word. */
const tellUnsettled = (): void => {
  process.stderr.write(
    'error: the command ends unfinished: a promise that it awaits, as at the top of MODULE, never settles\n',
  )
}

process.once('beforeExit', tellUnsettled)
await main(process.argv)
process.off('beforeExit', tellUnsettled)
