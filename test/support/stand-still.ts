/** This process stands still (ms), as on a machine that is busy or suspended. What peers send meanwhile waits in the kernel. */
export function standStill(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms)
}
