import { randomBytes } from 'node:crypto'
import { expect, it } from 'vitest'
import { openResponse, sealResponse } from '../../src/fleet/sealed-response.ts'
import { mintToken } from '../../src/tokens/mint.ts'

const [accessToken, refreshToken] = [mintToken(randomBytes), mintToken(randomBytes)]
const issued = { grant: 'g', accessToken, refreshToken, expiresIn: 3600 }
const presented = mintToken(randomBytes)

it('H132 the response of a rotated refresh opens for the token that was presented, and for no other', () => {
  const sealed = sealResponse(issued, presented, randomBytes)
  expect(openResponse(sealed, presented)).toEqual(issued)
  expect(openResponse(sealed, mintToken(randomBytes))).toBeUndefined()
  expect(Buffer.from(sealed, 'base64').toString('latin1')).not.toContain(issued.accessToken)
})

it('H132 a sealed response that somebody changed does not open', () => {
  const bytes = Buffer.from(sealResponse(issued, presented, randomBytes), 'base64')
  for (const at of [0, 12, 28, bytes.length - 1]) {
    const changed = Buffer.from(bytes)
    changed[at] = (changed[at] ?? 0) ^ 1
    expect(openResponse(changed.toString('base64'), presented)).toBeUndefined()
  }
  for (const short of ['', 'AAAA', bytes.subarray(0, 28).toString('base64')])
    expect(openResponse(short, presented)).toBeUndefined()
})
