import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { PassThrough, Readable } from 'node:stream'
import { text } from 'node:stream/consumers'
import { describe, expect, it } from 'vitest'
import { reportFailure } from '../../src/commands/command.ts'
import { hashPasswordCommand } from '../../src/commands/hash-password.ts'
import { parseStoredLine } from '../../src/password/stored-line.ts'
import { createVerifier } from '../../src/password/verifier.ts'
import { temporaryDirectory } from '../support/certificate.ts'
import { closeLater } from '../support/cleanup.ts'
import { stillClock } from '../support/clock.ts'
import { needs } from '../support/tools.ts'
import { verifyOne } from './verify-one.ts'

const clock = stillClock()

async function piped(...chunks: readonly (string | Uint8Array)[]) {
  const [stdout, stderr] = [new PassThrough(), new PassThrough()]
  const stdin = Readable.from(chunks.map((chunk) => Buffer.from(chunk)))
  const code = await hashPasswordCommand({ stdin, stdout, stderr, clock }).catch((error: unknown) =>
    reportFailure('hash-password', error, { stderr, env: {} }),
  )
  stdout.end()
  stderr.end()
  return { code, stdout: await text(stdout), stderr: await text(stderr) }
}

async function verdict(line: string, password: string) {
  const parsed = parseStoredLine(line, false)
  return typeof parsed === 'string'
    ? expect.fail(parsed)
    : verifyOne(createVerifier(stillClock()), parsed, password, '192.0.2.1')
}

describe('postern hash-password from a pipe', () => {
  it.each(['correcthorse', '2718281828459045', '^_^ ^_^ ^_^'])(
    'H356 asks for no kinds of characters: %j',
    async (password) => {
      const { code, stdout, stderr } = await piped(password)
      expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
      expect(await verdict(stdout.trim(), password)).toBe('right')
    },
  )

  it.each(['pä ssphrase', 'pä ssphrase\n', 'pä ssphrase\r\n'])(
    'prints a hash that accepts %j',
    async (input) => {
      // The chunks split a character, as a pipe may.
      const bytes = Buffer.from(input)
      const { code, stdout, stderr } = await piped(bytes.subarray(0, 2), bytes.subarray(2))
      expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
      expect(stdout).toMatch(/^\$argon2id\$[^\n]+\n$/)
      expect(await verdict(stdout.trim(), 'pä ssphrase')).toBe('right')
    },
  )

  it.each<[string | Uint8Array, string]>([
    ['', 'the password is empty'],
    ['\n', 'the password is empty'],
    ['one\ntwo\n', 'the input has several lines; give the password on exactly one'],
    ['one\n\n', 'the input has several lines; give the password on exactly one'],
    ['o\0ne', 'the password contains a NUL byte'],
    [Buffer.from('ü', 'latin1'), 'the input is not valid UTF-8'],
    ['x'.repeat(8193), 'the input is larger than 8 KiB'],
  ])('exits with 2 and one line with the reason: case %#', async (input, why) => {
    expect(await piped(input)).toEqual({ code: 2, stdout: '', stderr: `postern hash-password: ${why}\n` })
  })

  it.each(['x', 'sixchr', '1234567', 'PASSWORD1', 'aaaaaaaaaa', '€€€€€€€', '        '])(
    'H226 refuses the short or usual %j, and takes it with --weak',
    async (password) => {
      expect(await piped(password)).toEqual({
        code: 2,
        stdout: '',
        stderr: expect.stringMatching(
          /^postern hash-password: the password (?:has fewer than 8 characters|is one of the usual ones, .*); choose another one, or use it nevertheless with --weak\n$/,
        ),
      })
      const streams = { stdin: Readable.from([Buffer.from(password)]), stdout: new PassThrough() }
      expect(
        await hashPasswordCommand({ ...streams, stderr: new PassThrough(), clock }, { weak: true }),
      ).toBe(0)
      expect(await verdict(String(streams.stdout.read()).trim(), password)).toBe('right')
    },
  )

  it('H227 says that a blank at the end is part of the password', async () => {
    const { code, stdout, stderr } = await piped('correct horse ')
    expect([code, stderr]).toEqual([
      0,
      'postern hash-password: the password begins or ends with a blank, which is part of it\n',
    ])
    expect(await verdict(stdout.trim(), 'correct horse ')).toBe('right')
  })

  it('tells a person how long a login takes here: as long as the second hash', async () => {
    const times = [1_000, 1_023.4]
    const [stdout, stderr] = [new PassThrough(), Object.assign(new PassThrough(), { isTTY: true })]
    const stdin = Readable.from([Buffer.from('correct horse')])
    const stopwatch = { monotonic: () => times.shift() ?? expect.fail() }
    expect(await hashPasswordCommand({ stdin, stdout, stderr, clock: stopwatch })).toBe(0)
    expect(String(stderr.read())).toBe('postern hash-password: a login takes about 24 ms on this machine\n')
  })

  it('takes 7 MiB for a login with --for-board', async () => {
    const [stdout, stderr] = [new PassThrough(), new PassThrough()]
    const stdin = Readable.from([Buffer.from('correct horse')])
    expect(await hashPasswordCommand({ stdin, stdout, stderr, clock }, { forBoard: true })).toBe(0)
    const line = String(stdout.read()).trim()
    expect(line).toMatch(/^\$argon2id\$v=19\$m=7168,t=5,p=1\$/)
    expect(await verdict(line, 'correct horse')).toBe('right')
  })

  it('reads no more of an input that is too large', async () => {
    let read = 0
    const stdin = Readable.from(endless())
    const stdout = new PassThrough()
    await expect(hashPasswordCommand({ stdin, stdout, stderr: stdout, clock })).rejects.toThrow(
      'larger than 8 KiB',
    )
    expect(read).toBeLessThan(100)

    function* endless(): Iterable<Buffer> {
      for (; read < 10_000; read += 1) yield Buffer.alloc(1024)
    }
  })
})

describe('postern hash-password on a terminal', () => {
  /** Runs the command on a terminal that `script` opens, and types an input at each prompt. */
  async function runOnTerminal(...inputs: readonly string[]) {
    const folder = temporaryDirectory()
    const program = join(folder, 'command.mjs')
    const [command, failure] = ['hash-password', 'command'].map((name) =>
      JSON.stringify(new URL(`../../src/commands/${name}.ts`, import.meta.url).href),
    )
    const result = join(folder, 'result')
    writeFileSync(
      program,
      `import { createWriteStream, writeFileSync } from 'node:fs'
       import { hashPasswordCommand } from ${command}
       import { reportFailure } from ${failure}
       const { stdin, stderr } = process
       const clock = { monotonic: () => performance.now() }
       const stdout = createWriteStream(${JSON.stringify(result)})
       const code = await hashPasswordCommand({ stdin, stdout, stderr, clock }).catch((error) =>
         reportFailure('hash-password', error, { stderr, env: {} }))
       stdout.end(() => process.exit(code))`,
    )
    const child = spawn('script', ['-qec', `"${process.execPath}" "${program}"`, '/dev/null'])
    closeLater(() => void child.kill())
    let screen = ''
    let prompts = 0
    child.stdout.on('data', (chunk) => {
      screen += chunk
      const asked = screen.match(/Password(?: again)?: /g)?.length ?? 0
      for (; prompts < asked; prompts += 1) child.stdin.write(inputs[prompts] ?? '')
    })
    const [code] = await once(child, 'exit')
    return { code, screen, line: readFileSync(result, 'utf8').trim() }
  }

  it('H355 asks for the password twice and does not show it', async () => {
    needs('script')
    const { code, screen, line } = await runOnTerminal('hunter two3\x7f\r', 'hunter two\r')
    expect(screen.replaceAll('\r', '')).toMatch(
      /^Password: \nPassword again: \npostern hash-password: a login takes about \d+ ms on this machine\n$/,
    )
    expect(code).toBe(0)
    expect(await verdict(line, 'hunter two')).toBe('right')
  })

  it('exits with 2 and the reason if the inputs differ or Ctrl-C is pressed', async () => {
    needs('script')
    const differ = await runOnTerminal('hunter2\r', 'hunter3\r')
    expect(differ).toMatchObject({ code: 2, line: '' })
    expect(differ.screen).toContain('postern hash-password: the two passwords differ')
    const broken = await runOnTerminal('hunt\x03')
    expect(broken).toMatchObject({ code: 2, line: '' })
    expect(broken.screen).toContain('postern hash-password: cancelled')
    expect(broken.screen).not.toContain('hunt')
  })
})
