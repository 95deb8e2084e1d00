import { PassThrough, Readable } from 'node:stream'
import { text } from 'node:stream/consumers'
import { expect, it } from 'vitest'
import { defineProgram } from '../../src/commands/program.ts'

/** Runs a command without permission for any file. A restart fails. */
async function runWithheld(...args: readonly string[]) {
  const [stdout, stderr] = [new PassThrough(), new PassThrough()]
  let result: number | undefined
  const io = {
    stdin: () => Object.assign(Readable.from(['correct horse\n']), { isTTY: false, setRawMode: () => {} }),
    stdout,
    stderr,
    env: {},
    permissions: {
      permission: { has: (scope: string) => scope === 'child', drop: () => {} },
      env: {},
      readOutside: () => undefined,
      lookOutside: () => undefined,
      restart() {
        throw new Error('execve: out of memory')
      },
    },
    daemon: () => expect.fail('no daemon'),
    onSignals: () => () => {},
    node: undefined,
    lostOutput: () => undefined,
  }
  // The cast holds because these commands read no more of the input than its lines.
  const program = defineProgram(io as unknown as Parameters<typeof defineProgram>[0], (code) => {
    result = code
  })
  await program.parseAsync(args, { from: 'user' })
  stdout.end()
  stderr.end()
  return { result, stdout: await text(stdout), stderr: await text(stderr) }
}

it('hash-password needs no file, so it starts without a restart', async () => {
  const { result, stdout } = await runWithheld('hash-password')
  expect([result, stdout]).toEqual([0, expect.stringMatching(/^\$argon2id\$/)])
})

it('a restart that fails is reported like every failure of a command', async () => {
  const { result, stderr } = await runWithheld('status')
  expect([result, stderr]).toEqual([1, 'postern status: execve: out of memory\n'])
})
