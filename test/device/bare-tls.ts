import {
  constants,
  createCipheriv,
  createDecipheriv,
  createDiffieHellman,
  createHash,
  createHmac,
  privateDecrypt,
  randomBytes,
  sign,
  X509Certificate,
} from 'node:crypto'
import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import type { Certificate } from '../support/certificate.ts'
import { closeLater } from '../support/cleanup.ts'

const RSA = 0x002f
const DHE = 0x0033

/** PRF of TLS 1.2 (RFC 5246 §5). */
function prf(secret: Buffer, label: string, seed: Buffer, length: number): Buffer {
  const whole = Buffer.concat([Buffer.from(label), seed])
  let [a, out] = [whole, Buffer.alloc(0)]
  while (out.length < length) {
    a = createHmac('sha256', secret).update(a).digest()
    out = Buffer.concat([out, createHmac('sha256', secret).update(a).update(whole).digest()])
  }
  return out.subarray(0, length)
}

function sized(bytes: Buffer, width: number): Buffer {
  const length = Buffer.alloc(width)
  length.writeUIntBE(bytes.length, 0, width)
  return Buffer.concat([length, bytes])
}

const message = (type: number, body: Buffer): Buffer => Buffer.concat([Buffer.from([type]), sized(body, 3)])
const record = (type: number, body: Buffer): Buffer =>
  Buffer.concat([Buffer.from([type, 3, 3]), sized(body, 2)])

async function* recordsOf(socket: Socket): AsyncGenerator<{ type: number; body: Buffer }, void, void> {
  let bytes = Buffer.alloc(0)
  for await (const chunk of socket) {
    bytes = Buffer.concat([bytes, chunk])
    while (bytes.length >= 5 && bytes.length >= 5 + bytes.readUInt16BE(3)) {
      const end = 5 + bytes.readUInt16BE(3)
      yield { type: bytes[0] ?? 0, body: bytes.subarray(5, end) }
      bytes = bytes.subarray(end)
    }
  }
}

/** The ciphers of a ClientHello, in the order of the client. */
function offeredIn(hello: Buffer): number[] {
  const at = 39 + (hello[38] ?? 0)
  const count = hello.readUInt16BE(at) / 2
  return Array.from({ length: count }, (_, i) => hello.readUInt16BE(at + 2 + 2 * i))
}

/**
 * A device with its own TLS 1.2, of the time before extensions: AES-128-CBC by RSA, or by a group of 512 bits, and no secure
 * renegotiation. It takes the first of its ciphers in the order of the client, answers one request with 200, and closes without
 * close_notify.
 */
export async function startBareTls({ cert, key }: Certificate, groupToo: boolean): Promise<{ url: string }> {
  const server = createServer((socket) => {
    socket.on('error', () => {})
    serve(socket).catch(() => socket.destroy())
  })
  async function serve(socket: Socket): Promise<void> {
    const records = recordsOf(socket)
    const next = async () => (await records.next()).value ?? { type: 0, body: Buffer.alloc(0) }
    const hello = (await next()).body
    const ours = randomBytes(32)
    const theirs = hello.subarray(6, 38)
    const cipher = offeredIn(hello).find((each) => each === RSA || (groupToo && each === DHE)) ?? RSA
    const head = Buffer.from([0, cipher >> 8, cipher & 255, 0])
    const sent = [
      message(2, Buffer.concat([Buffer.from([3, 3]), ours, head])),
      message(11, sized(sized(new X509Certificate(cert).raw, 3), 3)),
    ]
    if (cipher === DHE) {
      const group = createDiffieHellman(512)
      const share = group.generateKeys()
      const values = Buffer.concat(
        [group.getPrime(), group.getGenerator(), share].map((each) => sized(each, 2)),
      )
      const signature = sign('sha256', Buffer.concat([theirs, ours, values]), key)
      sent.push(message(12, Buffer.concat([values, Buffer.from([4, 1]), sized(signature, 2)])))
    }
    sent.push(message(14, Buffer.alloc(0)))
    socket.write(Buffer.concat(sent.map((each) => record(22, each))))
    const exchange = (await next()).body
    const padding = constants.RSA_PKCS1_PADDING
    const secret = privateDecrypt({ key, padding }, exchange.subarray(6))
    const master = prf(secret, 'master secret', Buffer.concat([theirs, ours]), 48)
    const keys = prf(master, 'key expansion', Buffer.concat([ours, theirs]), 72)
    const open = (body: Buffer): Buffer => {
      const decipher = createDecipheriv('aes-128-cbc', keys.subarray(40, 56), body.subarray(0, 16))
      const plain = Buffer.concat([
        decipher.setAutoPadding(false).update(body.subarray(16)),
        decipher.final(),
      ])
      return plain.subarray(0, plain.length - (plain.at(-1) ?? 0) - 1 - 20)
    }
    let count = 0n
    const seal = (type: number, body: Buffer): Buffer => {
      const sequence = Buffer.alloc(8)
      sequence.writeBigUInt64BE(count++)
      const mac = createHmac('sha1', keys.subarray(20, 40))
        .update(sequence)
        .update(record(type, body))
        .digest()
      const padded = 16 - ((body.length + 20) % 16)
      const iv = randomBytes(16)
      const encipher = createCipheriv('aes-128-cbc', keys.subarray(56, 72), iv).setAutoPadding(false)
      const text = Buffer.concat([body, mac, Buffer.alloc(padded, padded - 1)])
      return record(type, Buffer.concat([iv, encipher.update(text), encipher.final()]))
    }
    await next() // ChangeCipherSpec
    const finished = open((await next()).body)
    const heard = createHash('sha256')
      .update(Buffer.concat([hello, ...sent, exchange, finished]))
      .digest()
    const proof = message(20, prf(master, 'server finished', heard, 12))
    socket.write(Buffer.concat([record(20, Buffer.from([1])), seal(22, proof)]))
    await next() // the request
    socket.end(seal(23, Buffer.from('HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nold')))
  }
  closeLater(() => void server.close())
  await once(server.listen(0, '127.0.0.1'), 'listening')
  return { url: `https://127.0.0.1:${(server.address() as AddressInfo).port}` }
}
