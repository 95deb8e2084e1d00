import { once } from 'node:events'
import { chmodSync, chownSync, lchownSync, mkdirSync, renameSync, symlinkSync, writeFileSync } from 'node:fs'
import { createServer, type Socket } from 'node:net'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { createHookSocket } from '../../src/password/hook-socket.ts'
import { nextTurn } from '../../src/system/clock.ts'
import { temporaryDirectory } from '../support/certificate.ts'
import { closeLater } from '../support/cleanup.ts'
import { stillClock } from '../support/clock.ts'
import { startHook } from './hook.ts'

/** A hook whose program gives this answer to every question. */
async function answering(answer: string | ((peer: Socket) => unknown)) {
  const program = await startHook()
  program.answer = (_line, peer) => (typeof answer === 'string' ? peer.end(answer, 'latin1') : answer(peer))
  const clock = stillClock()
  return { ...program, clock, hook: createHookSocket(program.socket, clock) }
}

/** A hook whose program does this with each connection, and reads nothing. */
async function unread(work: (peer: Socket) => unknown) {
  const socket = join(temporaryDirectory(), 'check.sock')
  const server = createServer({ allowHalfOpen: true, pauseOnConnect: true }, (peer) => {
    closeLater(() => void peer.destroy())
    peer.on('error', () => {})
    work(peer)
  })
  await once(server.listen(socket), 'listening')
  closeLater(() => void server.close())
  return { hook: createHookSocket(socket, stillClock()) }
}

const QUESTION = { user: null, password: 'p' }

describe('H360 A question to the hook', () => {
  it.each([
    ['text', 'p'],
    ['a line end, quotes and a backslash', 'a\r\n"b\'\\'],
    ['NUL and an escape', '\0\u001b[2J'],
    ['other characters than ASCII', 'näive 密码 🔑 \u2028'],
    ['8 KiB of NUL', '\0'.repeat(8192)],
  ])('is one line of JSON, with %s', async (_what, password) => {
    const { hook, lines } = await answering('right\n')
    await hook.ask({ user: 'é "x"\n', password })
    const [line = ''] = lines
    expect(line.match(/[^\n]*\n/g)).toEqual([line])
    expect(JSON.parse(line)).toEqual({ user: 'é "x"\n', password })
    expect(Buffer.byteLength(line)).toBeLessThan(50_000)
  })

  it('has a connection of its own, which the sidecar half-closes behind the line', async () => {
    const { hook, lines } = await answering('right\n')
    await Promise.all([hook.ask(QUESTION), hook.ask({ fingerprint: true })])
    expect(lines.toSorted()).toEqual(['{"fingerprint":true}\n', '{"user":null,"password":"p"}\n'])
  })
})

describe('H360 The answer of the hook', () => {
  it.each([
    ['right\n', { verdict: 'right' }],
    ['wrong\n', { verdict: 'wrong' }],
    ['right $6$a/b.c=\n', { verdict: 'right', fingerprint: '$6$a/b.c=' }],
    [`right ${'f'.repeat(512)}\n`, { verdict: 'right', fingerprint: 'f'.repeat(512) }],
  ])('%j is an answer', async (text, answer) => {
    const { hook } = await answering(text)
    expect(await hook.ask(QUESTION)).toEqual(answer)
  })

  it.each([
    ...['right', 'wrong', 'right one', '\n', 'Right\n', 'right \n', 'right a b\n', 'right\r\n', ' right\n'],
    ...[
      'wrong one\n',
      'right\nright\n',
      'right\nwrong\n',
      'wrong\n\n',
      'yes\n',
      'righ\xe9\n',
      'right \xe9\n',
      'right a\0\n',
    ],
    `right ${'f'.repeat(513)}\n`,
  ])('%j is an error', async (text) => {
    const { hook } = await answering(text)
    expect(await hook.ask(QUESTION)).toEqual({
      failed: 'its answer is not one line with right, right FINGERPRINT or wrong',
    })
  })

  it('may come in pieces', async () => {
    const { hook } = await answering(async (peer) => {
      peer.write('rig')
      await nextTurn()
      peer.end('ht\n')
    })
    expect(await hook.ask(QUESTION)).toEqual({ verdict: 'right' })
  })

  it('is an error if nothing comes', async () => {
    const { hook } = await answering('')
    expect(await hook.ask(QUESTION)).toEqual({ failed: 'it closed the connection without an answer' })
  })

  it('is bounded in bytes', async () => {
    const { hook } = await answering((peer) => peer.write('x'.repeat(1025)))
    expect(await hook.ask(QUESTION)).toEqual({ failed: 'its answer is longer than 1024 bytes' })
  })

  it('is bounded in bytes also behind a whole line, and the rest is not read', async () => {
    const closed = Promise.withResolvers<void>()
    const { hook } = await answering((peer) => {
      peer.once('close', () => closed.resolve()).write(`right\n${'x'.repeat(8 * 1024 * 1024)}`)
    })
    expect(await hook.ask(QUESTION)).toEqual({ failed: 'its answer is longer than 1024 bytes' })
    await closed.promise
  })

  it.each([
    ['answers and closes', 'right\n'],
    ['closes', ''],
  ])('is an error if the program %s before it has read the question', async (_what, answer) => {
    const { hook } = await unread((peer) => {
      if (answer !== '') peer.write(answer)
      peer.destroy()
    })
    expect(await hook.ask(QUESTION)).toEqual({
      failed: 'it closed the connection before it had read the question',
    })
  })

  it.each([
    ['right\n', { verdict: 'right' }],
    ['', { failed: 'it closed the connection without an answer' }],
  ])('ends when the program half-closes, whatever it has read: %j', async (text, answer) => {
    const { hook } = await unread((peer) => peer.end(text))
    expect(await hook.ask(QUESTION)).toEqual(answer)
  })

  it.each([
    ['', 'it did not give an answer within 10 s'],
    ['right\n', 'it did not close the connection after its answer within 10 s'],
  ])('has ten seconds, also to close the connection: %j', async (text, failed) => {
    const held = Promise.withResolvers<void>()
    const { hook, clock } = await answering((peer) => {
      if (text !== '') peer.write(text)
      held.resolve()
    })
    const asked = hook.ask(QUESTION)
    await held.promise
    let settled = false
    void asked.finally(() => {
      settled = true
    })
    await clock.advance(9_999)
    expect(settled).toBe(false)
    await clock.advance(1)
    expect(await asked).toEqual({ failed })
  })

  it('is not awaited after the end of the sidecar', async () => {
    const held = Promise.withResolvers<void>()
    const { hook } = await answering(() => held.resolve())
    const asked = hook.ask(QUESTION)
    await held.promise
    hook.close()
    expect(await asked).toEqual({ failed: 'the connection was closed' })
  })

  it('is missing while no program listens', async () => {
    const { hook, socket, stop } = await answering('right\n')
    const dead = createHookSocket(socket, stillClock())
    await stop()
    expect(await hook.ask(QUESTION)).toEqual({ failed: 'there is no such socket' })
    await expect(dead.ready()).rejects.toThrow(
      `password.socket: ${socket}: there is no such socket; start the program that listens there, or correct the path`,
    )
  })
})

describe('H361 No password is sent to a socket', () => {
  it.each([
    [0o777, 'other users can write'],
    [0o1777, 'other users can write'],
    [0o775, 'other users can write'],
  ])('in a folder of the mode %o', async (mode, reason) => {
    const { hook, folder, lines } = await answering('right\n')
    await hook.ready()
    // Another group than the private one of the user.
    if (process.getuid?.() === 0) chownSync(folder, 0, 4711)
    else if ((mode & 0o002) === 0) return
    chmodSync(folder, mode)
    const whole = `${reason} ${folder}, so they could put a socket there and receive passwords`
    await expect(hook.ready()).rejects.toThrow(`${whole}; chmod go-w ${folder}`)
    expect(await hook.ask(QUESTION)).toEqual({ failed: whole })
    expect(lines).toEqual([])
  })

  it.skipIf(process.getuid?.() !== 0)(
    'in a folder of another user, nor to a socket of another user',
    async () => {
      const { hook, folder, socket, lines } = await answering('right\n')
      chownSync(folder, 12_345, 0)
      await expect(hook.ready()).rejects.toThrow(
        `${folder} belongs to user 12345, who could put a socket there and receive passwords`,
      )
      chownSync(folder, 0, 0)
      await hook.ready()
      lchownSync(socket, 12_345, 0)
      await expect(hook.ready()).rejects.toThrow(`${socket}: it belongs to user 12345`)
      expect(await hook.ask(QUESTION)).toHaveProperty('failed')
      expect(lines).toEqual([])
    },
  )

  it('below a folder that others can write, unless it is sticky, nor behind a link there', async () => {
    const { hook, folder, socket, lines } = await answering('right\n')
    const above = temporaryDirectory()
    const inner = join(above, 'inner')
    mkdirSync(inner)
    const moved = join(inner, 'check.sock')
    renameSync(socket, moved)
    const [below, behind] = [
      createHookSocket(moved, stillClock()),
      createHookSocket(join(folder, 'link/check.sock'), stillClock()),
    ]
    symlinkSync(inner, join(folder, 'link'))
    chmodSync(above, 0o1777)
    for (const each of [below, behind]) await each.ready()
    chmodSync(above, 0o777)
    const reason = `other users can write ${above}, so they could put a socket there and receive passwords`
    for (const each of [below, behind]) {
      await expect(each.ready()).rejects.toThrow(`${reason}; chmod go-w ${above}, or put the socket`)
      expect(await each.ask(QUESTION)).toEqual({ failed: reason })
    }
    expect(await hook.ask(QUESTION)).toEqual({ failed: 'there is no such socket' })
    expect(lines).toEqual([])
  })

  it.each(['a file', 'a symbolic link to another socket', 'a folder'])(
    'whose place %s takes at run time',
    async (what) => {
      const [{ hook, socket, lines }, other] = [await answering('right\n'), await answering('right\n')]
      await hook.ready()
      renameSync(socket, `${socket}.old`)
      if (what === 'a file') writeFileSync(socket, 'right\n')
      else if (what === 'a folder') mkdirSync(socket)
      else symlinkSync(other.socket, socket)
      expect(await hook.ask(QUESTION)).toEqual({ failed: 'it is not a Unix socket' })
      expect([...lines, ...other.lines]).toEqual([])
    },
  )

  it('that a symbolic link names, or that is none', async () => {
    const { folder, socket } = await answering('right\n')
    const [link, file] = [join(folder, 'link'), join(folder, 'file')]
    symlinkSync(socket, link)
    writeFileSync(file, '')
    mkdirSync(join(folder, 'folder'))
    for (const path of [link, file, join(folder, 'folder')])
      await expect(createHookSocket(path, stillClock()).ready()).rejects.toThrow('it is not a Unix socket')
    await expect(createHookSocket(`${file}/x`, stillClock()).ready()).rejects.toThrow('is not a folder')
  })
})
