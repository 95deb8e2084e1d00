import { createPrivateKey, generateKeyPairSync } from 'node:crypto'
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import tls from 'node:tls'
import { beforeAll, describe, expect, it } from 'vitest'
import { inspectPair } from '../../src/listen/tls-pair.ts'
import { type Certificate, makeCertificate, temporaryDirectory } from '../support/certificate.ts'
import { closeLater } from '../support/cleanup.ts'
import { needs, run } from '../support/tools.ts'

let ec: Certificate
let other: Certificate
let rsa: Certificate

beforeAll(async () => {
  ;[ec, other, rsa] = await Promise.all([
    makeCertificate('ec'),
    makeCertificate('other'),
    makeCertificate('rsa', { keyType: 'rsa' }),
  ])
})

const inspect = (cert: string, key: string): ReturnType<typeof inspectPair> =>
  inspectPair({ path: 'cert.pem', text: cert }, { path: 'key.pem', text: key })

const half = (pem: string): string => pem.slice(0, pem.length / 2)

/** The DER of a PEM block. */
function der(pem: string): Buffer {
  return Buffer.from(pem.replace(/-----.*-----/g, ''), 'base64')
}

function encrypted(key: string, type: 'pkcs8' | 'sec1'): string {
  const secret = { format: 'pem', cipher: 'aes-256-cbc', passphrase: 'x' } as const
  return createPrivateKey(key)
    .export({ type, ...secret })
    .toString()
}

const PAIR = 'cert.pem and key.pem do not make a usable pair: '

type Case = readonly [what: string, files: () => readonly [cert: string, key: string], says: string]

const CASES: readonly Case[] = [
  ['an empty certificate', () => ['', ec.key], 'cert.pem is empty'],
  ['an empty key', () => [ec.cert, ' \n'], 'key.pem is empty'],
  ['two empty files', () => ['', ''], 'cert.pem is empty; key.pem is empty'],
  ['a file of zeros', () => [ec.cert, '\0'.repeat(241)], 'key.pem is empty'],
  [
    'half a certificate',
    () => [half(ec.cert), ec.key],
    'cert.pem is incomplete, as after an interrupted copy or on a full disk',
  ],
  [
    'half a key',
    () => [ec.cert, half(ec.key)],
    'key.pem is incomplete, as after an interrupted copy or on a full disk',
  ],
  [
    'a chain that ends in half a certificate',
    () => [ec.cert + half(other.cert), ec.key],
    'cert.pem is incomplete, as after an interrupted copy or on a full disk',
  ],
  [
    'a chain put together without a line break',
    () => [ec.cert.trimEnd() + other.cert, ec.key],
    'cert.pem lacks a line break behind an -----END line',
  ],
  [
    'a damaged certificate',
    () => [ec.cert.replace(/\n..../, '\n@@@@'), ec.key],
    'the certificate in cert.pem is damaged: error:04800064:PEM routines::bad base64 decode',
  ],
  [
    'a damaged certificate of a chain',
    () => [ec.cert + other.cert.replace(/\n..../, '\n@@@@'), ec.key],
    'certificate 2 of 2 in cert.pem is damaged: error:04800064:PEM routines::bad base64 decode',
  ],
  ['something else', () => ['<html>', ec.key], 'cert.pem holds no certificate in PEM'],
  [
    'a public key for the private one',
    () => [
      ec.cert,
      generateKeyPairSync('ed25519').publicKey.export({ type: 'spki', format: 'pem' }).toString(),
    ],
    'key.pem holds no private key in PEM, but: PUBLIC KEY',
  ],
  ['the key twice', () => [ec.key, ec.key], 'cert.pem holds no certificate in PEM, but: PRIVATE KEY'],
  [
    'the two swapped',
    () => [ec.key, ec.cert],
    'cert.pem holds the private key and key.pem the certificate: swap the two',
  ],
  [
    'a certificate in DER',
    () => [der(ec.cert).toString(), ec.key],
    'cert.pem is binary (DER) and must be PEM: convert it with openssl x509 -inform der -in cert.pem -out NEW',
  ],
  [
    'a key in DER',
    () => [ec.cert, der(ec.key).toString()],
    'key.pem is binary (DER) and must be PEM: convert it with openssl pkey -inform der -in key.pem -out NEW',
  ],
  ...(['pkcs8', 'sec1'] as const).map(
    (type): Case => [
      `an encrypted key, ${type}`,
      () => [ec.cert, encrypted(ec.key, type)],
      'key.pem holds an encrypted key, and Postern cannot ask for its passphrase: decrypt it with openssl pkey -in key.pem -out NEW',
    ],
  ),
  [
    'an RSA key beside an EC certificate',
    () => [ec.cert, rsa.key],
    `${PAIR}the key is RSA, the certificate is for EC (prime256v1)`,
  ],
  [
    'an EC key beside an RSA certificate',
    () => [rsa.cert, ec.key],
    `${PAIR}the key is EC (prime256v1), the certificate is for RSA`,
  ],
  [
    'the key of another certificate',
    () => [ec.cert, other.key],
    `${PAIR}the key belongs to another certificate`,
  ],
  [
    'a chain whose first certificate is not that of the key',
    () => [other.cert + ec.cert, ec.key],
    `${PAIR}the key belongs to certificate 2 of the file, but must belong to the first`,
  ],
]

describe('H76 a certificate and its key', () => {
  it.each(CASES)('are refused with the file and the reason: %s', (_what, files, says) => {
    expect(inspect(...files())).toBe(says)
  })

  it('are refused if either is truncated at any byte', () => {
    for (let length = 0; length < ec.cert.trimEnd().length; length += 1) {
      expect(inspect(ec.cert.slice(0, length), ec.key)).toMatch(/^cert.pem (?:is empty|is incomplete)/)
      // Without any byte of the second certificate, the chain is valid and shorter.
      if (length > 0) {
        expect(inspect(ec.cert + other.cert.slice(0, length), ec.key)).toMatch(/^cert.pem is incomplete/)
      }
    }
    for (let length = 0; length < ec.key.trimEnd().length; length += 1) {
      expect(inspect(ec.cert, ec.key.slice(0, length))).toMatch(/^key.pem (?:is empty|is incomplete)/)
    }
  })

  const GOOD: readonly (readonly [what: string, files: () => readonly [string, string]])[] = [
    ['unchanged', () => [ec.cert, ec.key]],
    ['with RSA', () => [rsa.cert, rsa.key]],
    ['with a chain', () => [ec.cert + other.cert + rsa.cert, ec.key]],
    ['with CRLF line ends', () => [ec.cert.replaceAll('\n', '\r\n'), ec.key.replaceAll('\n', '\r\n')]],
    ['both in one file', () => [ec.key + ec.cert, ec.key + ec.cert]],
    [
      'with text around the PEM blocks',
      () => [`0 s:CN = x\n---\n${ec.cert}\n- über\n${other.cert}\n`, `Bag Attributes\n${ec.key}`],
    ],
    ['with a byte order mark', () => [`\ufeff${ec.cert}`, `\ufeff${ec.key}`]],
    ['with the key in SEC 1 form', () => [ec.cert, sec1(ec.key)]],
  ]

  it.each(GOOD)('are accepted and serve a handshake: %s', async (_what, files) => {
    const [cert, key] = files()
    const found = inspect(cert, key)
    if (typeof found === 'string') throw new Error(found)
    expect(await handshake(found.cert, found.key)).toBe('done')
  })

  it.each([
    ['DSA', ['dsaparam', '-genkey', '2048'], 'TLS has no signature scheme for a key that is DSA'],
    [
      'EC on a curve that TLS does not use',
      ['ecparam', '-name', 'secp256k1', '-genkey', '-noout'],
      'TLS has no signature scheme for a key that is EC (secp256k1)',
    ],
    ['RSA of 1024 bits', ['genrsa', '1024'], 'error:0A00018F:SSL routines::ee key too small'],
  ])('are refused if every handshake would fail: %s', async (_what, makeKey, says) => {
    needs('openssl')
    const [cert, key] = await signedByOpenssl(makeKey)
    expect(inspect(cert, key)).toBe(PAIR + says)
    // OpenSSL accepts the first two and then fails every handshake.
    if (!says.startsWith('error')) expect(await handshake(cert, key)).toBe('failed')
  })

  it('are refused as PKCS #12 with the commands that convert them', async () => {
    needs('openssl')
    const file = join(temporaryDirectory(), 'both.p12')
    const { certFile, keyFile } = ec
    await run('openssl', [
      ...['pkcs12', '-export', '-in', certFile, '-inkey', keyFile, '-passout', 'pass:x', '-out', file],
    ])
    const text = readFileSync(file, 'utf8')
    expect(inspect(text, text)).toBe(
      'cert.pem is binary (PKCS #12) and must be PEM: convert it with openssl pkcs12 -nokeys -in cert.pem -out NEW; ' +
        'key.pem is binary (PKCS #12) and must be PEM: convert it with openssl pkcs12 -nocerts -nodes -in key.pem -out NEW',
    )
  })

  it('are converted and decrypted by the commands in the messages', async () => {
    needs('openssl')
    const folder = temporaryDirectory()
    const [cert, key, result] = ['cert', 'key', 'result'].map((name) => join(folder, name)) as [
      string,
      string,
      string,
    ]
    const tried: readonly (readonly [string, Buffer | string, passphrase: string])[] = [
      [cert, der(ec.cert), ''],
      [key, der(ec.key), ''],
      [key, encrypted(ec.key, 'pkcs8'), 'x\n'],
    ]
    for (const [file, content, input] of tried) {
      writeFileSync(file, content)
      const [certText, keyText] = file === cert ? [String(content), ec.key] : [ec.cert, String(content)]
      const says = inspectPair({ path: cert, text: certText }, { path: key, text: keyText })
      const [, command = ''] = /with openssl (.*)$/.exec(String(says)) ?? []
      const args = command.replace('NEW', result).split(' ')
      const { code } = await run('openssl', input === '' ? args : [...args, '-passin', 'stdin'], { input })
      expect([says, code]).toEqual([says, 0])
      const mended = readFileSync(result, 'utf8')
      expect(typeof (file === cert ? inspect(mended, ec.key) : inspect(ec.cert, mended))).toBe('object')
    }
  })
})

function sec1(key: string): string {
  return createPrivateKey(key).export({ type: 'sec1', format: 'pem' }).toString()
}

async function signedByOpenssl(makeKey: readonly string[]): Promise<readonly [cert: string, key: string]> {
  const folder = temporaryDirectory()
  const [cert, key] = [join(folder, 'cert.pem'), join(folder, 'key.pem')]
  const made = await run('openssl', [...makeKey.slice(0, 1), '-out', key, ...makeKey.slice(1)])
  expect([made.stderr, made.code]).toEqual([made.stderr, 0])
  const signed = await run('openssl', ['req', '-x509', '-new', '-key', key, '-subj', '/CN=x', '-out', cert])
  expect([signed.stderr, signed.code]).toEqual([signed.stderr, 0])
  return [readFileSync(cert, 'utf8'), readFileSync(key, 'utf8')]
}

/** The result of a handshake with a client that accepts any certificate. */
async function handshake(cert: string, key: string): Promise<'done' | 'failed'> {
  const server = tls.createServer({ cert, key }).on('tlsClientError', () => {})
  closeLater(() => void server.close())
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('no port')
  const socket = tls.connect({ host: '127.0.0.1', port: address.port, rejectUnauthorized: false })
  try {
    await once(socket, 'secureConnect')
    return 'done'
  } catch {
    return 'failed'
  } finally {
    socket.destroy()
  }
}
