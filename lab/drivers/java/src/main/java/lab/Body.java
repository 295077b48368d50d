package lab;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;

/** The bytes that every PUT sends: the test server's formula for the key "body". */
final class Body {
    private static final int PERIOD = 1_048_583;

    private Body() {}

    static byte[] of(int size) {
        ByteBuffer table = ByteBuffer.allocate(PERIOD + Long.BYTES).order(ByteOrder.LITTLE_ENDIAN);
        for (long number = 1; table.position() < PERIOD; number++) {
            long word = number * 0x9E3779B97F4A7C15L;
            word = (word ^ word >>> 30) * 0xBF58476D1CE4E5B9L;
            word = (word ^ word >>> 27) * 0x94D049BB133111EBL;
            table.putLong(word ^ word >>> 31);
        }
        long phase = 0xCBF29CE484222325L;
        for (char letter : "body".toCharArray()) {
            phase = (phase ^ letter) * 0x100000001B3L;
        }
        byte[] made = new byte[size];
        int from = (int) Long.remainderUnsigned(phase, PERIOD);
        for (int at = 0; at < size; from = 0) {
            int count = Math.min(PERIOD - from, size - at);
            System.arraycopy(table.array(), from, made, at, count);
            at += count;
        }
        return made;
    }
}
