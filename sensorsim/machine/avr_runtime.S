; What clang for AVR calls and does not bring along: 32-bit products, quotients and remainders at 8, 16 and 32 bit.
; Registers as in libgcc, steps as in Atmel's application note AVR200: one bit of the quotient in each round.
; Every function may change r18 to r27, r30, r31, r0 and T, and leaves 0 in r1.

.macro negate2 low, high
    com \high
    neg \low
    sbci \high, 0xFF
.endm

.macro negate4 a, b, c, d
    com \d
    com \c
    com \b
    neg \a
    sbci \b, 0xFF
    sbci \c, 0xFF
    sbci \d, 0xFF
.endm

; r25:r22 = r25:r22 * r21:r18
.section .text.__mulsi3, "ax", @progbits
.global __mulsi3
.type __mulsi3, @function
__mulsi3:
    mul r22, r18
    movw r30, r0
    mul r23, r19
    movw r26, r0
    mul r24, r18
    add r26, r0
    adc r27, r1
    mul r22, r20
    add r26, r0
    adc r27, r1
    mul r25, r18
    add r27, r0
    mul r22, r21
    add r27, r0
    mul r23, r20
    add r27, r0
    mul r24, r19
    add r27, r0
    clr r25
    mul r23, r18
    add r31, r0
    adc r26, r1
    adc r27, r25
    mul r22, r19
    add r31, r0
    adc r26, r1
    adc r27, r25
    movw r22, r30
    movw r24, r26
    clr r1
    ret
.size __mulsi3, . - __mulsi3

; r24, rest r25 = r24 / r22
.section .text.__udivmodqi4, "ax", @progbits
.global __udivmodqi4
.type __udivmodqi4, @function
__udivmodqi4:
    sub r25, r25
    ldi r23, 9
    rjmp 2f
1:  rol r25
    cp r25, r22
    brcs 2f
    sub r25, r22
2:  rol r24
    dec r23
    brne 1b
    com r24
    ret
.size __udivmodqi4, . - __udivmodqi4

; r23:r22, rest r25:r24 = r25:r24 / r23:r22
.section .text.__udivmodhi4, "ax", @progbits
.global __udivmodhi4
.type __udivmodhi4, @function
__udivmodhi4:
    ldi r21, 17
    sub r26, r26
    sub r27, r27
    rjmp 2f
1:  rol r26
    rol r27
    cp r26, r22
    cpc r27, r23
    brcs 2f
    sub r26, r22
    sbc r27, r23
2:  rol r24
    rol r25
    dec r21
    brne 1b
    com r24
    com r25
    movw r22, r24
    movw r24, r26
    ret
.size __udivmodhi4, . - __udivmodhi4

; r21:r18, rest r25:r22 = r25:r22 / r21:r18
.section .text.__udivmodsi4, "ax", @progbits
.global __udivmodsi4
.type __udivmodsi4, @function
__udivmodsi4:
    ldi r26, 33
    mov r0, r26
    sub r26, r26
    sub r27, r27
    movw r30, r26
    rjmp 2f
1:  rol r26
    rol r27
    rol r30
    rol r31
    cp r26, r18
    cpc r27, r19
    cpc r30, r20
    cpc r31, r21
    brcs 2f
    sub r26, r18
    sbc r27, r19
    sbc r30, r20
    sbc r31, r21
2:  rol r22
    rol r23
    rol r24
    rol r25
    dec r0
    brne 1b
    com r22
    com r23
    com r24
    com r25
    movw r18, r22
    movw r20, r24
    movw r22, r26
    movw r24, r30
    ret
.size __udivmodsi4, . - __udivmodsi4

; The signed ones: the rest has the sign of the dividend (in T), the quotient that of the product (on the stack).
.section .text.__divmodqi4, "ax", @progbits
.global __divmodqi4
.type __divmodqi4, @function
__divmodqi4:
    bst r24, 7
    mov r0, r24
    eor r0, r22
    push r0
    sbrc r24, 7
    neg r24
    sbrc r22, 7
    neg r22
    call __udivmodqi4
    pop r0
    sbrc r0, 7
    neg r24
    brtc 1f
    neg r25
1:  ret
.size __divmodqi4, . - __divmodqi4

.section .text.__divmodhi4, "ax", @progbits
.global __divmodhi4
.type __divmodhi4, @function
__divmodhi4:
    bst r25, 7
    mov r0, r25
    eor r0, r23
    push r0
    brtc 1f
    negate2 r24, r25
1:  sbrs r23, 7
    rjmp 2f
    negate2 r22, r23
2:  call __udivmodhi4
    pop r0
    sbrs r0, 7
    rjmp 3f
    negate2 r22, r23
3:  brtc 4f
    negate2 r24, r25
4:  ret
.size __divmodhi4, . - __divmodhi4

.section .text.__divmodsi4, "ax", @progbits
.global __divmodsi4
.type __divmodsi4, @function
__divmodsi4:
    bst r25, 7
    mov r0, r25
    eor r0, r21
    push r0
    brtc 1f
    negate4 r22, r23, r24, r25
1:  sbrs r21, 7
    rjmp 2f
    negate4 r18, r19, r20, r21
2:  call __udivmodsi4
    pop r0
    sbrs r0, 7
    rjmp 3f
    negate4 r18, r19, r20, r21
3:  brtc 4f
    negate4 r22, r23, r24, r25
4:  ret
.size __divmodsi4, . - __divmodsi4
