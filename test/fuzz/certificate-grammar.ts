import { createPrivateKey, createPublicKey, generateKeyPairSync, type KeyObject, sign } from 'node:crypto'
import fc from 'fast-check'

/** One element in DER (X.690), with a content of up to 16 MiB. */
function der(tag: number, ...content: readonly Uint8Array[]): Buffer {
  const whole = Buffer.concat(content)
  const size = whole.length.toString(16)
  const digits = Buffer.from(size.padStart(size.length + (size.length % 2), '0'), 'hex')
  const length = whole.length < 0x80 ? [whole.length] : [0x80 | digits.length, ...digits]
  return Buffer.concat([Buffer.from([tag, ...length]), whole])
}

const sequence = (...content: readonly Uint8Array[]): Buffer => der(0x30, ...content)
const integer = (value: Uint8Array): Buffer => der(0x02, value)
const oid = (hex: string): Buffer => der(0x06, Buffer.from(hex, 'hex'))
const octets = (content: Uint8Array): Buffer => der(0x04, content)
export const latin1 = (text: string): Buffer => Buffer.from(text, 'latin1')

/** With and without a name of NIST, and binary ones. */
const CURVES = [
  ...['prime256v1', 'secp384r1', 'secp521r1', 'secp224r1', 'prime192v1', 'sect233k1', 'sect571r1'],
  ...['brainpoolP160r1', 'brainpoolP256r1', 'brainpoolP256t1', 'brainpoolP384r1', 'brainpoolP512r1'],
  ...['secp256k1', 'secp160r1', 'secp112r1', 'prime239v1', 'sect113r1', 'c2pnb163v1'],
  'wap-wsg-idm-ecid-wtls12',
]

const onCurve =
  (namedCurve: string, paramEncoding: 'named' | 'explicit' = 'named') =>
  () =>
    generateKeyPairSync('ec', { namedCurve, paramEncoding }).privateKey

const rsa = (modulusLength: number) => () => generateKeyPairSync('rsa', { modulusLength }).privateKey

/** Kinds of keys that sign certificates here. */
const SIGNERS: Readonly<Record<string, () => KeyObject>> = {
  ...Object.fromEntries(CURVES.map((curve) => [curve, onCurve(curve)])),
  'prime256v1 in full': onCurve('prime256v1', 'explicit'),
  'brainpoolP256r1 in full': onCurve('brainpoolP256r1', 'explicit'),
  'rsa 512': rsa(512),
  'rsa 1024': rsa(1024),
  'rsa 2048': rsa(2048),
  ed25519: () => generateKeyPairSync('ed25519').privateKey,
  ed448: () => generateKeyPairSync('ed448').privateKey,
}

/** All kinds that OpenSSL makes in a moment. A key is made when a certificate first has it. */
const KINDS: Readonly<Record<string, () => KeyObject>> = {
  ...SIGNERS,
  'rsa-pss': () =>
    generateKeyPairSync('rsa-pss', { modulusLength: 1024, hashAlgorithm: 'sha256' }).privateKey,
  dsa: () => generateKeyPairSync('dsa', { modulusLength: 1024, divisorLength: 160 }).privateKey,
  x25519: () => generateKeyPairSync('x25519').privateKey,
  'ml-dsa-44': () => generateKeyPairSync('ml-dsa-44').privateKey,
}

const made = new Map<string, KeyObject>()

function keyOf(kind: string): KeyObject {
  const make = KINDS[kind]
  if (make === undefined) throw new Error(`no such kind of key: ${kind}`)
  return made.getOrInsertComputed(kind, make)
}

/** With what a key signs: EdDSA, or with SHA-256. */
function algorithmOf({ asymmetricKeyType: type }: KeyObject): Buffer {
  if (type === 'ec') return sequence(oid('2a8648ce3d040302'))
  if (type === 'rsa') return sequence(oid('2a864886f70d01010b'), Buffer.from([5, 0]))
  return sequence(oid(type === 'ed25519' ? '2b6570' : '2b6571'))
}

const spki = (key: KeyObject): Buffer => createPublicKey(key).export({ type: 'spki', format: 'der' })
const publicKeyOf = (kind: string): Buffer => spki(keyOf(kind))
const pkcs8 = (kind: string): Buffer => keyOf(kind).export({ type: 'pkcs8', format: 'der' })

/** Common name, organization, unit, country, mail, and one that OpenSSL has no name for. */
const ATTRIBUTES = ['550403', '55040a', '55040b', '550406', '2a864886f70d010901', '2a030405'] as const
/** UTF8String, BMPString, UniversalString, PrintableString, T61String, IA5String, a BIT STRING, and how each writes a text. */
const TEXTS: readonly (readonly [tag: number, encode: (text: string) => Buffer])[] = [
  [0x0c, Buffer.from],
  [0x1e, (text) => wide(text, 2)],
  [0x1c, (text) => wide(text, 4)],
  ...[0x13, 0x14, 0x16].map((tag) => [tag, latin1] as const),
  [0x03, (text) => latin1(`\0${text}`)],
]

/** The text with each of its characters in `size` bytes. */
const wide = (text: string, size: number): Buffer =>
  Buffer.concat([...latin1(text)].map((byte) => Buffer.from([...Array<number>(size - 1).fill(0), byte])))

const words = fc.oneof(
  fc.constantFrom(
    ...[
      'localhost',
      '127.0.0.1',
      '',
      '\0',
      'localhost\0.example',
      'a\nCN=localhost',
      'x + CN=localhost',
      '*',
    ],
    ...[
      '\\',
      '"',
      ', DNS:localhost',
      '\xff\xfe',
      'xn--',
      '#0C',
      '.',
      `${'a'.repeat(300)}.example`,
      '=',
      '\x7f',
    ],
  ),
  fc.string({ maxLength: 12 }),
)

const attribute = fc
  .tuple(fc.constantFrom(...ATTRIBUTES), fc.constantFrom(...TEXTS), words)
  .map(([type, [tag, encode], text]) => sequence(oid(type), der(tag, encode(text))))

const rdn = fc.array(attribute, { minLength: 1, maxLength: 3 }).map((all) => der(0x31, ...all))

const name = fc.oneof(
  { weight: 3, arbitrary: fc.constant(nameOf('localhost')) },
  { weight: 1, arbitrary: fc.constant(sequence()) },
  { weight: 4, arbitrary: fc.array(rdn, { maxLength: 4 }).map((all) => sequence(...all)) },
  { weight: 1, arbitrary: rdn.map((one) => sequence(...Array<Buffer>(100).fill(one))) },
)

function nameOf(text: string): Buffer {
  return sequence(der(0x31, sequence(oid('550403'), der(0x0c, latin1(text)))))
}

/** Alternative names by their tag: mail, DNS, URI, address, any other name, a directory name, a registered id. */
const alternative = fc.oneof(
  words.map((text) => der(0x82, latin1(text))),
  words.map((text) => der(0x81, latin1(text))),
  words.map((text) => der(0x86, latin1(text))),
  fc.uint8Array({ maxLength: 20 }).map((bytes) => der(0x87, bytes)),
  words.map((text) => der(0xa0, oid('2b060105050708'), der(0xa0, der(0x0c, latin1(text))))),
  words.map((text) => der(0xa4, nameOf(text))),
  fc.uint8Array({ maxLength: 8 }).map((bytes) => der(0x88, bytes)),
)

const LOOPBACK = [der(0x87, Buffer.from([127, 0, 0, 1])), der(0x82, latin1('localhost'))]

const alternatives = fc.oneof(
  fc.constant(LOOPBACK),
  fc.array(alternative, { maxLength: 5 }).map((some) => [...LOOPBACK, ...some]),
  alternative.map((one) => [...LOOPBACK, ...Array<Buffer>(100).fill(one)]),
)

const extension = (type: string, value: Uint8Array, critical = false): Buffer =>
  sequence(oid(type), ...(critical ? [Buffer.from([1, 1, 0xff])] : []), octets(value))

/** Those that OpenSSL and Node read, with contents that fit and that do not, and an unknown one of up to 60 KiB. */
const odd = fc.oneof(
  fc.array(alternative, { maxLength: 3 }).map((some) => extension('551d12', sequence(...some))),
  words.map((text) =>
    extension('2b06010505070101', sequence(sequence(oid('2b06010505073001'), der(0x86, latin1(text))))),
  ),
  fc
    .array(fc.constantFrom('2b06010505070301', '2b06010505070302', '2a030405', ''), { maxLength: 4 })
    .map((uses) => extension('551d25', sequence(...uses.map(oid)))),
  fc.uint8Array({ maxLength: 4 }).map((bits) => extension('551d0f', der(0x03, bits))),
  fc.uint8Array({ maxLength: 40 }).map((bytes) => extension('551d13', bytes)),
  alternative.map((one) => extension('551d1e', sequence(der(0xa0, sequence(one))))),
  fc
    .tuple(fc.integer({ max: 60_000, min: 0 }), fc.boolean())
    .map(([size, critical]) => extension('2a030405', Buffer.alloc(size, 0x41), critical)),
)

/** Times before 1950 and after 2049, and such as no calendar has. The first are right now. */
const NOW = ['20200101000000Z', '20990101000000Z'] as const
const time = fc.oneof(
  fc
    .constantFrom(
      '00000101000000Z',
      '19490101000000Z',
      '19991231235959Z',
      '20500101000000Z',
      '99991231235959Z',
      '20260230000000Z',
    )
    .map((text) => der(0x18, latin1(text))),
  fc
    .constantFrom('500101000000Z', '491231235959Z', '000000000000Z', '260101000000+0100', '999999999999Z')
    .map((text) => der(0x17, latin1(text))),
)
const validity = fc.oneof(
  { weight: 3, arbitrary: fc.constant(NOW.map((text) => der(0x18, latin1(text)))) },
  { weight: 2, arbitrary: fc.tuple(time, time) },
)

const serial = fc.oneof(
  { weight: 3, arbitrary: fc.constant(Buffer.from([1])) },
  {
    weight: 2,
    arbitrary: fc
      .constantFrom([0], [0xff], [0x80, 0], Array(1000).fill(0x7f))
      .map((bytes) => Buffer.from(bytes)),
  },
)

/** A key that none has the private half of: RSA of many bits, with an exponent of as many. */
const vastKey = fc.integer({ min: 1, max: 2048 }).map((size) => {
  const odd = Buffer.alloc(size, 0x7f)
  return sequence(
    sequence(oid('2a864886f70d010101'), Buffer.from([5, 0])),
    der(0x03, Buffer.from([0]), sequence(integer(odd), integer(odd))),
  )
})

/** Bytes of a certificate that are changed before it is signed. */
const damage = fc.oneof(
  { weight: 4, arbitrary: fc.constant([]) },
  {
    weight: 1,
    arbitrary: fc.array(fc.tuple(fc.double({ min: 0, max: 0.999, noNaN: true }), fc.nat(255)), {
      minLength: 1,
      maxLength: 3,
    }),
  },
)

interface Plan {
  readonly issuer: Buffer
  readonly subject: Buffer
  readonly publicKey: Buffer
  readonly isAuthority: boolean
  readonly serial: Buffer
  readonly validity: readonly Buffer[]
  readonly extensions: readonly Buffer[]
  readonly damage: readonly (readonly [at: number, byte: number])[]
}

/** What is signed of a certificate. */
function contentOf(plan: Plan, signer: KeyObject): Buffer {
  const constraint = extension('551d13', sequence(...(plan.isAuthority ? [Buffer.from([1, 1, 0xff])] : [])))
  const content = sequence(
    der(0xa0, integer(Buffer.from([2]))),
    integer(plan.serial),
    algorithmOf(signer),
    plan.issuer,
    sequence(...plan.validity),
    plan.subject,
    plan.publicKey,
    der(0xa3, sequence(constraint, ...plan.extensions)),
  )
  for (const [at, byte] of plan.damage) content[Math.floor(at * content.length)] = byte
  return content
}

function signed(content: Buffer, signer: KeyObject): Buffer {
  const digest = /^ed/.test(signer.asymmetricKeyType ?? '') ? undefined : 'sha256'
  const signature = der(0x03, Buffer.from([0]), sign(digest, content, signer))
  return sequence(content, algorithmOf(signer), signature)
}

const oddParts = fc.record({
  serial,
  validity,
  damage,
  extensions: fc.array(odd, { maxLength: 2 }),
})

const USUAL = {
  serial: Buffer.from([1]),
  validity: NOW.map((text) => der(0x18, latin1(text))),
  damage: [],
  extensions: [],
}

const ISSUER = nameOf('authority')
const anyKey = fc.constantFrom(...Object.keys(KINDS))

/**
 * What a peer shows, as Latin-1: the private keys (PKCS #8) of the trusted authority and of the peer, and the contents of its certificate
 * and of up to two more. Each of these has the name of the authority, so that Node takes it for the issuer of the one before.
 */
export const shownCertificates: fc.Arbitrary<string[]> = fc
  .record({
    signer: fc.constantFrom(...Object.keys(SIGNERS)),
    kind: fc.oneof(fc.constant('prime256v1'), anyKey),
    subject: name,
    names: alternatives,
    own: oddParts,
    behind: fc.array(fc.record({ publicKey: fc.oneof(anyKey.map(publicKeyOf), vastKey), parts: oddParts }), {
      maxLength: 2,
    }),
  })
  .map(({ signer, kind, subject, names, own, behind }) => {
    const plans: Plan[] = [
      {
        ...own,
        ...{ issuer: ISSUER, subject, publicKey: publicKeyOf(kind), isAuthority: false },
        extensions: [extension('551d11', sequence(...names)), ...own.extensions],
      },
      ...behind.map(({ publicKey, parts }) => ({
        ...parts,
        ...{ issuer: ISSUER, subject: ISSUER, publicKey, isAuthority: true },
      })),
    ]
    const contents = plans.map((plan) => contentOf(plan, keyOf(signer)))
    return [pkcs8(signer), pkcs8(kind), ...contents].map((each) => each.toString('latin1'))
  })

/** The certificate of the authority that has this key, and the contents, signed with it. */
export function signAll(
  privateKey: Buffer,
  contents: readonly Buffer[],
): { readonly authority: Buffer; readonly chain: readonly Buffer[] } {
  const signer = createPrivateKey({ key: privateKey, format: 'der', type: 'pkcs8' })
  const plan = { ...USUAL, issuer: ISSUER, subject: ISSUER, publicKey: spki(signer), isAuthority: true }
  return {
    authority: signed(contentOf(plan, signer), signer),
    chain: contents.map((content) => signed(content, signer)),
  }
}
