/** Runs the command of an argv and sets the exit code. Loads only what the verb needs, to start fast. */
import { CommanderError } from 'commander'
import { makeProgram } from './program/program.ts'

const main = async (argv: readonly string[]): Promise<void> => {
  // The default until a verb sets it: a process that ends too early must not look like a success.
  process.exitCode = 1
  // `holdfast list | head` is not an error.
  process.stdout.on('error', (error: NodeJS.ErrnoException) => process.exit(error.code === 'EPIPE' ? 0 : 1))
  try {
    // A shell asks for completions: see program/completion.ts.
    if (argv[2] === 'complete' && argv[3] === '--') {
      const { complete } = await import('./program/completion.ts')
      complete(argv.slice(4))
      process.exitCode = 0
      return
    }
    await makeProgram((code) => (process.exitCode = code)).parseAsync(argv.length > 2 ? argv : [...argv, '--help'])
  } catch (thrown) {
    if (thrown instanceof CommanderError && thrown.exitCode === 0) {
      process.exitCode = 0
      return
    }
    const { report } = await import('./output/errors.ts')
    const error = thrown instanceof CommanderError ? await usageError(thrown) : thrown
    process.exitCode = report(error, argv.includes('--json'))
  }
}

/** A parse error as a HoldfastError, with the exit code of any other bad input. */
const usageError = async ({ code, message }: CommanderError): Promise<Error> => {
  const { HoldfastError } = await import('../index.ts')
  const text = code === 'commander.help' ? 'name a verb' : message.replace(/^error: /, '').replaceAll('\n', ' ')
  return new HoldfastError('INVALID_OPTION', text)
}

await main(process.argv)
