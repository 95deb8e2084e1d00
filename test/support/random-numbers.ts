/** Random numbers from a seed: every run sends the same requests, so a failure can be reproduced. */
export function randomNumbers(seed: number): (sides: number) => number {
  let state = seed
  return (sides) => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) & 0x7fff_ffff
    return (state >> 8) % sides
  }
}
